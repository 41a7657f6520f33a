import { readFile } from "node:fs/promises";

/** The message names the path and, if known, the line. */
export class JsonFileError extends Error {
  override readonly name = "JsonFileError";

  constructor(
    message: string,
    readonly kind: "unreadable" | "missing" | "not JSON" | "duplicate key",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

interface Fault {
  text: string;
  location: { line: number; column: number; lineText: string } | null;
}

/** esbuild reports line and column; Node's error often does not. */
const faultIn = async (text: string): Promise<Fault | undefined> => {
  const { transformSync } = await import("esbuild");
  try {
    transformSync(text, { loader: "json", logLevel: "silent" });
    return undefined;
  } catch (error) {
    return (error as { errors?: Fault[] }).errors?.[0];
  }
};

const TOKEN = /"(?:[^"\\]+|\\.)*"|[{}[\]:]/g;

interface Duplicate {
  key: string;
  /** Of the second key, from 1. */
  line: number;
  column: number;
}

/** The text has to be valid JSON. */
const duplicateIn = (json: string): Duplicate | undefined => {
  const open: Set<string>[] = [];
  let last = { token: "", index: 0 };
  for (const { 0: token, index } of json.matchAll(TOKEN)) {
    if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") {
      const key = JSON.parse(last.token) as string;
      const keys = open.at(-1);
      if (keys?.has(key) === true) {
        const before = json.slice(0, last.index).split(/\r?\n/);
        return { key, line: before.length, column: [...(before.at(-1) ?? "")].length + 1 };
      }
      keys?.add(key);
    }
    last = { token, index };
  }
  return undefined;
};

/**
 * Accepts a byte order mark.
 * @param options.uniqueKeys refuses duplicate keys, of which `JSON.parse` silently keeps the last
 * @throws JsonFileError
 */
export const readJsonFile = async (path: string, { uniqueKeys = false } = {}): Promise<unknown> => {
  const text = await readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") throw new JsonFileError(`There is no ${path}.`, "missing", { cause });
    throw new JsonFileError(`${path} can't be read: ${cause.name}: ${cause.message}.`, "unreadable", {
      cause,
    });
  });
  const json = text.replace(/^\uFEFF/, "");
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    const fault = await faultIn(json);
    const { line, column, lineText } = fault?.location ?? {};
    // esbuild counts bytes, from 0.
    const before = Buffer.from(lineText ?? "").subarray(0, column);
    const place = line === undefined ? "" : `:${line}:${[...before.toString()].length + 1}`;
    const reason = fault?.text ?? (cause as Error).message;
    throw new JsonFileError(`${path}${place} is not JSON: ${reason}.`, "not JSON", { cause });
  }
  const duplicate = uniqueKeys ? duplicateIn(json) : undefined;
  if (duplicate === undefined) return value;
  const { key, line, column } = duplicate;
  throw new JsonFileError(
    `${path}:${line}:${column} repeats the key ${JSON.stringify(key)} of the same object: remove or rename one of the two.`,
    "duplicate key",
  );
};
