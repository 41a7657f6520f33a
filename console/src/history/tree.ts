import type { StoredCheckpoint } from "../parts/checkpoints.ts";

export interface TreeRow {
  id: string;
  state: StoredCheckpoint;
  /** The number of forks on the path. */
  level: number;
  /** On the newest checkpoint of a branch. */
  branch: Branch | undefined;
  /** The number of branches that continue here. */
  ways: number;
  /** Empty if the previous checkpoint is not loaded. */
  wrote: readonly string[];
}

export interface Branch {
  number: number;
  length: number;
  /** Undefined at the start of the thread. */
  from: { id: string; step: number | undefined; isLoaded: boolean } | undefined;
}

const idOf = ({ checkpoint }: StoredCheckpoint): string => checkpoint?.checkpoint_id ?? "";

const writersOf = (
  { metadata }: StoredCheckpoint,
  parent: StoredCheckpoint | undefined,
): readonly string[] =>
  metadata?.source === "loop" ? (parent?.next ?? []).filter((name) => name !== "__start__") : [];

/**
 * Newest branch and checkpoint first, forks above the checkpoint that they begin after. Ids rise with time
 * along a branch.
 * @param states newest first
 */
export const rowsOf = (states: readonly StoredCheckpoint[]): TreeRow[] => {
  const byId = new Map(states.map((state) => [idOf(state), state]));
  const children = new Map<string, StoredCheckpoint[]>();
  const beginnings: StoredCheckpoint[] = [];
  const newest = new Map<string, string>();
  for (const state of byId.values()) {
    const id = idOf(state);
    const own = newest.get(id) ?? id;
    newest.set(id, own);
    const parent = state.parent_checkpoint?.checkpoint_id;
    if (parent === undefined || !byId.has(parent)) {
      beginnings.push(state);
      continue;
    }
    children.set(parent, [...(children.get(parent) ?? []), state]);
    if (own > (newest.get(parent) ?? "")) newest.set(parent, own);
  }
  const byNewest = (a: StoredCheckpoint, b: StoredCheckpoint): number =>
    (newest.get(idOf(a)) ?? "") < (newest.get(idOf(b)) ?? "") ? 1 : -1;

  const rows: TreeRow[] = [];
  let branches = 0;
  const addBranch = (first: StoredCheckpoint, level: number): void => {
    const chain: { state: StoredCheckpoint; forked: StoredCheckpoint[] }[] = [];
    for (let state: StoredCheckpoint | undefined = first; state !== undefined;) {
      const [onward, ...forked]: StoredCheckpoint[] = [...(children.get(idOf(state)) ?? [])].sort(byNewest);
      chain.push({ state, forked });
      state = onward;
    }
    branches += 1;
    const parentId = first.parent_checkpoint?.checkpoint_id;
    const parent = parentId === undefined ? undefined : byId.get(parentId);
    const branch: Branch = {
      number: branches,
      length: chain.length,
      from:
        parentId === undefined
          ? undefined
          : { id: parentId, step: parent?.metadata?.step, isLoaded: parent !== undefined },
    };
    for (const [index, { state, forked }] of chain.reverse().entries()) {
      for (const fork of forked) addBranch(fork, level + 1);
      const before = state.parent_checkpoint?.checkpoint_id;
      rows.push({
        id: idOf(state),
        state,
        level,
        branch: index === 0 ? branch : undefined,
        ways: forked.length + (index === 0 ? 0 : 1),
        wrote: writersOf(state, before === undefined ? undefined : byId.get(before)),
      });
    }
  };
  for (const beginning of beginnings.sort(byNewest)) addBranch(beginning, 0);
  return rows;
};

const NAMES_SHOWN = 4;

/** E.g. `investigate ×3, report`. */
export const nodeNames = (names: readonly string[]): string => {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const shown = [...counts]
    .slice(0, NAMES_SHOWN)
    .map(([name, count]) => (count === 1 ? name : `${name} ×${count}`));
  return counts.size > NAMES_SHOWN ? `${shown.join(", ")}, …` : shown.join(", ");
};

const SOURCES: ReadonlyMap<string, string> = new Map([
  ["input", "input"],
  ["loop", "loop"],
  ["update", "update"],
  ["fork", "fork"],
]);

/** E.g. `Step 2 · loop`. */
export const titleOf = ({ metadata }: { metadata: { step?: number; source?: string } | null }): string => {
  const source = SOURCES.get(metadata?.source ?? "") ?? "stored";
  return metadata?.step === undefined ? source : `Step ${metadata.step} · ${source}`;
};
