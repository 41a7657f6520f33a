import type { Database } from "../database.ts";
import type { Threads } from "../queryable.ts";
import { createNodes, type NodesOptions } from "./nodes.ts";
import { createPart } from "./parts.ts";
import { partOf as partIn } from "./placement.ts";
import { routes, shardTexts } from "./texts.ts";
import { createTransactions, joined } from "./transactions.ts";

/**
 * A database whose threads are spread over nodes by Citus. A statement of a thread goes to the node of its part, with
 * the names of the part's shards: PostgreSQL then plans and executes it as in a database of its own. Statements of
 * common tables go to `common`, which reaches all tables through Citus.
 */
export const distribute = (common: Database, options: NodesOptions): Database => {
  const { placement, schema, logger } = options;
  const nodes = createNodes(options);
  const texts = placement.parts.map(({ tables }) => shardTexts(schema, tables));
  const parts = texts.map((text, part) => createPart(common, nodes, part, text, logger));
  const everyPart = [...parts.keys()];
  const routeOf = routes(schema, placement.ofThreads);
  const partOf = (threadId: string): number => partIn(placement, threadId);

  /** A statement about no thread may still answer something, so one part executes it. */
  const partsOfThreads = (threads: Threads | null | undefined): number[] => {
    if (typeof threads === "string") return [partOf(threads)];
    if (threads === null || threads === undefined || threads.length === 0) return [0];
    return [...new Set(threads.map(partOf))].sort((a, b) => a - b);
  };

  const placesIn = (
    ofNoThread: () => readonly number[],
    text: string,
    values: readonly unknown[],
    threads?: Threads | null,
  ): readonly number[] | undefined => {
    const route = routeOf(text);
    if (route.kind === "common") return undefined;
    if (threads !== undefined && threads !== null) {
      const places = partsOfThreads(threads);
      // Each part would store the rows of all.
      if (route.kind === "insert" && places.length > 1)
        throw new Error("This statement would store rows of threads in several parts.");
      return places;
    }
    // Citus finds the parts of the rows.
    if (route.kind === "insert") return undefined;
    return route.kind === "every part"
      ? ofNoThread()
      : partsOfThreads(values[route.parameter - 1] as Threads | null);
  };

  /** `ofNoThread`: the parts of a statement that names no thread. */
  const over = (ofNoThread: () => readonly number[]): Database => {
    const placesFor = (text: string, values: readonly unknown[], threads?: Threads | null) =>
      placesIn(ofNoThread, text, values, threads);
    return {
      ...common,
      parts,
      partOf,
      partsByNode() {
        const wanted = new Set(ofNoThread());
        return nodes
          .partsByNode()
          .map((places) => places.filter((part) => wanted.has(part)).map((part) => parts[part]!))
          .filter((ofNode) => ofNode.length > 0);
      },
      nodesUp: nodes.up,
      withParts: over,
      async query<Row>(
        text: string,
        values: unknown[] = [],
        queryOptions: { answerMs?: number; threads?: Threads } = {},
      ) {
        const places = placesFor(text, values, queryOptions.threads);
        if (places === undefined) return await common.query<Row>(text, values, queryOptions);
        const rows = places.map((part) => parts[part]!.query<Row>(text, values, queryOptions));
        return (await Promise.all(rows)).flat();
      },
      async execute<Row>(text: string, values: unknown[]) {
        const places = placesFor(text, values);
        if (places === undefined) return await common.execute<Row>(text, values);
        return joined(await Promise.all(places.map((part) => parts[part]!.execute<Row>(text, values))));
      },
      grouped: (statement, source) => parts[partOf(statement.threadOf(source))]!.grouped(statement, source),
      transaction: createTransactions({ common, nodes, texts, partOf, placesFor }),
      isLoss: (error) => common.isLoss(error) || nodes.isLoss(error),
      onConnectionLost(listener) {
        const ends = [common, nodes].map((each) => each.onConnectionLost(listener));
        return () => ends.forEach((end) => end());
      },
      async close() {
        await nodes.close();
        await common.close();
      },
    };
  };
  return over(() => everyPart);
};
