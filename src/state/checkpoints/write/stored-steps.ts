import type { QueueItem } from "./batch.ts";

interface Graph {
  /** The checkpoint from which its newest task began. */
  from: string;
  /** The writes of this task, until they are stored. */
  unstored: QueueItem | undefined;
  /** The newest stored checkpoint. */
  newest: string;
}

/** Knows which steps of an attempt clients can read. Ids order checkpoints. */
export class StoredSteps {
  /** By checkpoint namespace. */
  private readonly graphs = new Map<string, Graph>();
  private readonly waiting = new Set<() => void>();

  queued(item: QueueItem): void {
    if (item.writes === undefined) return;
    const graph = this.graphOf(item.writes.checkpointNs);
    graph.from = item.writes.checkpointId;
    graph.unstored = item;
  }

  stored(items: readonly QueueItem[]): void {
    for (const item of items) {
      const { checkpoint, writes } = item;
      if (checkpoint !== undefined) {
        const graph = this.graphOf(checkpoint.checkpointNs);
        if (checkpoint.checkpointId > graph.newest) graph.newest = checkpoint.checkpointId;
      }
      const written = writes && this.graphs.get(writes.checkpointNs);
      if (written?.unstored === item) written.unstored = undefined;
    }
    for (const check of this.waiting) check();
  }

  /** See AttemptSaver. */
  whenReadable(checkpointNs: string, isStepOver: boolean): Promise<void> | undefined {
    const graph = this.graphs.get(checkpointNs);
    if (graph === undefined) return undefined;
    if (isStepOver) this.forgetBelow(checkpointNs);
    const { from } = graph;
    const isReadable = (): boolean => (isStepOver ? graph.newest > from : graph.unstored === undefined);
    if (isReadable()) return undefined;
    return new Promise((resolve) => {
      const check = (): void => {
        if (!isReadable()) return;
        this.waiting.delete(check);
        resolve();
      };
      this.waiting.add(check);
    });
  }

  /** No graph below executes at the end of a step. Bounds memory: thousands of graphs may end during a run. */
  private forgetBelow(checkpointNs: string): void {
    const prefix = checkpointNs === "" ? "" : `${checkpointNs}|`;
    for (const [key, { from, unstored, newest }] of this.graphs) {
      const isStored = unstored === undefined && newest > from;
      if (isStored && key !== checkpointNs && key.startsWith(prefix)) this.graphs.delete(key);
    }
  }

  private graphOf(checkpointNs: string): Graph {
    const found = this.graphs.get(checkpointNs);
    if (found !== undefined) return found;
    const graph: Graph = { from: "", unstored: undefined, newest: "" };
    this.graphs.set(checkpointNs, graph);
    return graph;
  }
}
