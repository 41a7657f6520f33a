import type { Logger } from "../../lib/logger.ts";
import type { Database } from "../database.ts";
import { isPassing } from "../passing-faults.ts";
import { holdShards, type Hold } from "./hold.ts";
import { readPlacement, type Part, type Placement } from "./placement.ts";

export interface NodesOptions {
  placement: Placement;
  schema: string;
  /** Shown to other processes by a lock on each node. Undefined: this process runs nothing. */
  processId: string | undefined;
  /** `node`: `host:port`. */
  openNode(node: string): Database;
  /** The connection string of a node. */
  addressOf(node: string): string;
  /** The placement as the coordinator knows it. */
  readPlacement(): Promise<Placement | undefined>;
  logger: Logger;
}

/** The databases of the nodes, opened when a statement first needs them. */
export const createNodes = (options: NodesOptions) => {
  const { placement, schema, processId, openNode, addressOf, logger } = options;
  const nodes = new Map<string, { database: Database; hold: Hold }>();
  /** Also those of nodes that are gone, whose statements may still fail. */
  const opened: Database[] = [];
  const failures = new WeakSet<Error>();
  const lossListeners = new Set<() => void>();
  const lost = (): void => lossListeners.forEach((listener) => listener());
  /** By part. */
  const places = placement.parts.map(({ node }) => node);

  const assertSameRanges = (now: readonly Part[]): void => {
    // With other ranges of hashes, statements would go to wrong shards.
    if (now.map(({ from }) => from).join() !== placement.parts.map(({ from }) => from).join())
      throw new Error("The shards were split or removed. Restart all servers.");
  };

  /** A node that failed may have another address by now: `citus_update_node` names its standby instead. */
  const forgetIfGone = async (name: string): Promise<boolean> => {
    try {
      const now = (await options.readPlacement())?.parts ?? [];
      if (now.some(({ node }) => node === name)) return false;
      assertSameRanges(now);
      // Other places are known from holds, which read them under their locks.
      for (const [index, part] of now.entries()) if (places[index] === name) places[index] = part.node;
    } catch (error) {
      logger.debug({ err: error }, "the coordinator can't be asked for the places of the shards");
      return false;
    }
    logger.warn({ node: name, instead: [...new Set(places)] }, "a node of the database was replaced");
    const gone = nodes.get(name);
    nodes.delete(name);
    gone?.hold.close();
    void gone?.database.close();
    return true;
  };

  const nodeAt = (name: string) => {
    let node = nodes.get(name);
    if (node === undefined) {
      const hold = holdShards({
        connectionString: addressOf(name),
        processId,
        async shards(client) {
          return (await readPlacement(client, schema))?.parts.flatMap(({ shardIds }) => shardIds) ?? [];
        },
        async learnPlaces(client) {
          const now = (await readPlacement(client, schema))?.parts ?? [];
          assertSameRanges(now);
          now.forEach((part, index) => (places[index] = part.node));
        },
        isGone: () => forgetIfGone(name),
        onFailure(error) {
          if (error instanceof Error && isPassing(error)) failures.add(error);
        },
        logger,
      });
      node = { database: openNode(name), hold };
      node.database.onConnectionLost(lost);
      opened.push(node.database);
      nodes.set(name, node);
    }
    return node;
  };

  return {
    databaseOf: (part: number): Database => nodeAt(places[part]!).database,
    /** A part may have moved while the caller waited. */
    async onPart<Result>(part: number, work: (database: Database) => Promise<Result>): Promise<Result> {
      for (;;) {
        const name = places[part]!;
        const { database, hold } = nodeAt(name);
        const answer = await hold.during(async () =>
          places[part] === name ? { result: await work(database) } : undefined,
        );
        if (answer !== undefined) return answer.result;
      }
    },
    partsByNode(): number[][] {
      const found = new Map<string, number[]>();
      for (const [part, name] of places.entries()) found.set(name, [...(found.get(name) ?? []), part]);
      return [...found.values()];
    },
    /** As `Database.nodesUp`. */
    up: (): Record<string, boolean> =>
      Object.fromEntries([...nodes].map(([name, { hold }]) => [name, hold.isHeld])),
    /** As `Database.isLoss`. */
    isLoss: (error: unknown): boolean =>
      (error instanceof Error && failures.has(error)) || opened.some((database) => database.isLoss(error)),
    /** As `Database.onConnectionLost`. */
    onConnectionLost(listener: () => void): () => void {
      lossListeners.add(listener);
      return () => lossListeners.delete(listener);
    },
    async close(): Promise<void> {
      for (const { hold } of nodes.values()) hold.close();
      await Promise.all([...nodes.values()].map(({ database }) => database.close()));
    },
  };
};

export type Nodes = ReturnType<typeof createNodes>;
