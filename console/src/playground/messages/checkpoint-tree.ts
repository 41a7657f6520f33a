/** Without values. */
export interface Checkpoint {
  id: string;
  parent: string | undefined;
  /** `input`, `loop`, `update` or `fork`, as in LangGraph. */
  source: string;
  next: readonly string[];
  runId?: string | undefined;
}

export interface Fork {
  /** Undefined before the first checkpoint. */
  shared: string | undefined;
  /** Oldest first. */
  branches: readonly string[];
  /** Of the shown branch. */
  position: number;
}

export interface CheckpointTree {
  /** Otherwise branches at the start of the thread are unknown. */
  isWhole: boolean;
  byId: ReadonlyMap<string, Checkpoint>;
  children: ReadonlyMap<string | undefined, readonly Checkpoint[]>;
}

/** @param checkpoints in any order; ids rise with time */
export const treeOf = (checkpoints: Iterable<Checkpoint>, isWhole: boolean): CheckpointTree => {
  const byId = new Map<string, Checkpoint>();
  for (const checkpoint of checkpoints) byId.set(checkpoint.id, checkpoint);
  const children = new Map<string | undefined, Checkpoint[]>();
  for (const checkpoint of [...byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1))) {
    const parent =
      checkpoint.parent !== undefined && byId.has(checkpoint.parent) ? checkpoint.parent : undefined;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [checkpoint]);
    else siblings.push(checkpoint);
  }
  return { isWhole, byId, children };
};

/** From the first checkpoint. */
export const pathTo = ({ byId }: CheckpointTree, id: string | undefined): Checkpoint[] => {
  const path: Checkpoint[] = [];
  for (let at = id === undefined ? undefined : byId.get(id); at !== undefined;) {
    path.push(at);
    at = at.parent === undefined ? undefined : byId.get(at.parent);
  }
  return path.reverse();
};

/** They only mark the start of a run. */
const RUN_STARTS: ReadonlySet<string> = new Set(["input", "fork"]);

/** After the markers; a fork of a fork has several in a row. */
const branchStarts = ({ children }: CheckpointTree, id: string | undefined): Checkpoint[] => {
  const found: Checkpoint[] = [];
  const waiting = [...(children.get(id) ?? [])];
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    const below = children.get(one.id);
    if (RUN_STARTS.has(one.source) && below !== undefined) waiting.push(...below);
    else found.push(one);
  }
  return found.sort((one, other) => (one.id < other.id ? -1 : 1));
};

/** From the first checkpoint to `id`. */
export const forksOnPath = (tree: CheckpointTree, id: string | undefined): Fork[] => {
  const path = pathTo(tree, id);
  const indexOf = new Map(path.map((checkpoint, index) => [checkpoint.id, index]));
  const forks: Fork[] = [];
  let index = tree.isWhole ? -1 : 0;
  while (index < path.length - 1) {
    const shared = path[index]?.id;
    const branches = branchStarts(tree, shared);
    const position = branches.findIndex((branch) => indexOf.has(branch.id));
    const taken = branches[position];
    if (taken === undefined) break;
    if (branches.length > 1) forks.push({ shared, branches: branches.map((branch) => branch.id), position });
    index = indexOf.get(taken.id) ?? path.length;
  }
  return forks;
};

export const headOf = ({ byId }: CheckpointTree): Checkpoint | undefined => {
  let head: Checkpoint | undefined;
  for (const checkpoint of byId.values())
    if (head === undefined || checkpoint.id > head.id) head = checkpoint;
  return head;
};

export const newestBelow = ({ children }: CheckpointTree, id: string): string => {
  let newest = id;
  const waiting = [id];
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    if (one > newest) newest = one;
    for (const child of children.get(one) ?? []) waiting.push(child.id);
  }
  return newest;
};
