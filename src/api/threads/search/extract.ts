import { invalid } from "../../../platform/domain/errors.ts";

/** The limit in the published contract. */
const PATHS_AT_MOST = 10;
const STEPS_AT_MOST = 50;

export const EXTRACTABLE = ["values", "metadata", "config", "interrupts"] as const;
export type Extractable = (typeof EXTRACTABLE)[number];

export interface ExtractPath {
  alias: string;
  root: Extractable;
  /** Negative positions count from the end. */
  steps: (string | number)[];
}

/** `.key` or `[3]`, `[-1]`, `["any key"]`. */
const STEP = /\.([^.[\]]+)|\[(-?\d{1,9})\]|\["([^"\\]*)"\]/y;

/** Throws `invalid` with the alias of an invalid path. */
export const parseExtract = (extract: Record<string, string>): ExtractPath[] => {
  const entries = Object.entries(extract);
  if (entries.length > PATHS_AT_MOST) throw invalid(`'extract': at most ${PATHS_AT_MOST} paths are allowed.`);
  return entries.map(([alias, path]) => parsePath(alias, path));
};

const parsePath = (alias: string, path: string): ExtractPath => {
  const refuse = (why: string) => invalid(`'extract.${alias}': the path '${path}' ${why}.`);
  const root = EXTRACTABLE.find((name) => path.startsWith(name) && /^($|[.[])/.test(path.slice(name.length)));
  if (root === undefined) {
    throw refuse("must start with values, metadata, config or interrupts");
  }
  const steps: (string | number)[] = [];
  STEP.lastIndex = root.length;
  while (STEP.lastIndex < path.length) {
    const match = STEP.exec(path);
    if (match === null) throw refuse("can't be read; write keys as .key and positions as [0] or [-1]");
    const [, key, position, quoted] = match;
    if (key !== undefined) steps.push(key);
    else if (position !== undefined) steps.push(Number(position));
    else steps.push(quoted ?? "");
    if (steps.length > STEPS_AT_MOST) throw refuse(`has more than ${STEPS_AT_MOST} steps`);
  }
  return { alias, root, steps };
};

export const extractFrom = (value: unknown, steps: readonly (string | number)[]): unknown => {
  let current = value;
  for (const step of steps) {
    if (Array.isArray(current)) {
      if (typeof step !== "number") return null;
      current = (current as unknown[]).at(step);
    } else if (typeof current === "object" && current !== null) {
      const key = String(step);
      current = Object.hasOwn(current, key) ? (current as Record<string, unknown>)[key] : undefined;
    } else return null;
  }
  return current ?? null;
};
