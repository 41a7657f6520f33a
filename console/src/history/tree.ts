import type { StoredCheckpoint } from "../parts/checkpoints.ts";

export interface TreeRow {
  id: string;
  state: StoredCheckpoint;
  /** The number of branches that continue here. */
  ways: number;
  /** Empty if the previous checkpoint is not loaded. */
  wrote: readonly string[];
  /** Since the previous checkpoint; undefined for the first one of a run, which may have waited. */
  durationMs: number | undefined;
}

/** The checkpoints that one run stored in a branch, or one edit of the state. */
export interface Turn {
  /** Of its newest checkpoint. */
  id: string;
  runId: string | undefined;
  level: number;
  /** On the newest turn of a branch. */
  branch: Branch | undefined;
  /** Newest first, at least one. */
  rows: readonly TreeRow[];
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

const durationBetween = (
  before: StoredCheckpoint | undefined,
  { created_at: ended, metadata }: StoredCheckpoint,
): number | undefined => {
  if (metadata?.source !== "loop" || before?.created_at == null || ended === null) return undefined;
  if (before.metadata?.run_id !== metadata.run_id) return undefined;
  // Two servers may have stored them, whose clocks differ.
  return Math.max(0, Date.parse(ended) - Date.parse(before.created_at));
};

/** Consecutive checkpoints of one run, in the order of `chain`. */
const runsIn = <Item extends { state: StoredCheckpoint }>(chain: readonly Item[]): Item[][] => {
  const runs: Item[][] = [];
  let last: string | undefined;
  for (const item of chain) {
    const runId = item.state.metadata?.run_id;
    if (runs.length === 0 || runId === undefined || runId !== last) runs.push([]);
    last = runId;
    runs.at(-1)?.push(item);
  }
  return runs;
};

/**
 * Newest branch and turn first, forks above the turn in which they begin. Ids rise with time along a branch.
 * @param states newest first
 */
export const turnsOf = (states: readonly StoredCheckpoint[]): Turn[] => {
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

  const turns: Turn[] = [];
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
    const head = chain.at(-1)?.state;
    for (const items of runsIn(chain.reverse())) {
      for (const { forked } of items) for (const fork of forked) addBranch(fork, level + 1);
      const rows = items.map(({ state, forked }): TreeRow => {
        const before = state.parent_checkpoint?.checkpoint_id;
        return {
          id: idOf(state),
          state,
          ways: forked.length + (state === head ? 0 : 1),
          wrote: writersOf(state, before === undefined ? undefined : byId.get(before)),
          durationMs: durationBetween(before === undefined ? undefined : byId.get(before), state),
        };
      });
      const id = rows[0]?.id ?? "";
      turns.push({
        id,
        runId: items[0]?.state.metadata?.run_id,
        level,
        branch: items[0]?.state === head ? branch : undefined,
        rows,
      });
    }
  };
  for (const beginning of beginnings.sort(byNewest)) addBranch(beginning, 0);
  return turns;
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
