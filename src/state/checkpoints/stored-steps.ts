import type { QueueItem } from "./write.ts";

interface Graph {
  /** The checkpoint from which its newest task began. */
  from: string;
  /** The writes of this task, until they are stored. */
  unstored: QueueItem | undefined;
  /** Whether the next checkpoint is stored. */
  isOver: boolean;
}

/** Knows which steps of an attempt clients can read. */
export class StoredSteps {
  /** By checkpoint namespace. */
  private readonly graphs = new Map<string, Graph>();
  private readonly waiting = new Set<(items: readonly QueueItem[]) => void>();

  queued(item: QueueItem): void {
    if (item.writes === undefined) return;
    const graph = this.graphOf(item.writes.checkpointNs);
    if (graph.from !== item.writes.checkpointId) graph.isOver = false;
    graph.from = item.writes.checkpointId;
    graph.unstored = item;
  }

  stored(items: readonly QueueItem[]): void {
    for (const item of items) {
      const { checkpoint, writes } = item;
      const graph = checkpoint && this.graphs.get(checkpoint.checkpointNs);
      if (graph !== undefined && checkpoint?.parentId === graph.from) graph.isOver = true;
      const written = writes && this.graphs.get(writes.checkpointNs);
      if (written?.unstored === item) written.unstored = undefined;
    }
    for (const check of this.waiting) check(items);
  }

  /** See AttemptSaver. */
  whenReadable(checkpointNs: string, isStepOver: boolean): Promise<void> | undefined {
    const graph = this.graphs.get(checkpointNs);
    if (graph === undefined) return undefined;
    if (isStepOver) this.forgetBelow(checkpointNs);
    if (isStepOver ? graph.isOver : graph.unstored === undefined) return undefined;
    const { from } = graph;
    const endsStep = ({ checkpoint }: QueueItem): boolean =>
      checkpoint?.checkpointNs === checkpointNs && checkpoint.parentId === from;
    return new Promise((resolve) => {
      const check = (items: readonly QueueItem[]): void => {
        if (!(isStepOver ? items.some(endsStep) : graph.unstored === undefined)) return;
        this.waiting.delete(check);
        resolve();
      };
      this.waiting.add(check);
    });
  }

  /** No graph below executes at the end of a step. Bounds memory: thousands of graphs may end during a run. */
  private forgetBelow(checkpointNs: string): void {
    const prefix = checkpointNs === "" ? "" : `${checkpointNs}|`;
    for (const [key, { unstored, isOver }] of this.graphs) {
      const isStored = unstored === undefined && isOver;
      if (isStored && key !== checkpointNs && key.startsWith(prefix)) this.graphs.delete(key);
    }
  }

  private graphOf(checkpointNs: string): Graph {
    const found = this.graphs.get(checkpointNs);
    if (found !== undefined) return found;
    const graph: Graph = { from: "", unstored: undefined, isOver: false };
    this.graphs.set(checkpointNs, graph);
    return graph;
  }
}
