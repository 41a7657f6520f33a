import type { Logger } from "../../lib/logger.ts";
import type { Database, Records } from "../database.ts";
import { createGrouping, type Grouping } from "../grouping.ts";
import type { Threads } from "../queryable.ts";
import { holdShards, type Hold } from "./hold.ts";
import { partOf, readPlacement, type Placement } from "./placement.ts";
import { routes, shardTexts, type Route } from "./texts.ts";

interface Node {
  database: Database;
  hold: Hold;
}

export interface DistributedOptions {
  /** Reaches all tables through Citus. */
  common: Database;
  placement: Placement;
  schema: string;
  /** `address`: `host:port`. */
  openNode(address: string): Database;
  /** The connection string of a node. */
  addressOf(address: string): string;
  logger: Logger;
}

/** Thrown into the transactions of nodes that are to be rolled back with another one. */
const ROLLED_BACK = Symbol("rolled back");

/**
 * A database whose threads are spread over nodes by Citus. A statement of a thread goes to the node of its part, with
 * the names of the part's shards: PostgreSQL then plans and executes it as in a database of its own. Statements of
 * common tables go to `common`.
 */
export const distribute = (options: DistributedOptions): Database => {
  const { common, placement, schema, openNode, addressOf, logger } = options;
  const nodes = new Map<string, Node>();
  const nodeNames = placement.parts.map(({ node }) => node);
  const texts = placement.parts.map(({ tables }) => shardTexts(schema, tables));
  const routeOf = routes(schema, placement.ofThreads);

  const nodeAt = (address: string): Node => {
    let node = nodes.get(address);
    if (node === undefined) {
      const hold = holdShards({
        connectionString: addressOf(address),
        async shardsNow(client) {
          const now = await readPlacement(client, schema);
          now?.parts.forEach(({ node: at }, index) => (nodeNames[index] = at));
          return now?.parts.flatMap((part) => (part.node === address ? part.shardIds : [])) ?? [];
        },
        logger,
      });
      node = { database: openNode(address), hold };
      nodes.set(address, node);
    }
    return node;
  };

  /** A part may have moved while the caller waited. */
  const onPart = async <Result>(
    part: number,
    work: (database: Database) => Promise<Result>,
  ): Promise<Result> => {
    for (;;) {
      const address = nodeNames[part]!;
      const { database, hold } = nodeAt(address);
      const answer = await hold.during(async () =>
        nodeNames[part] === address ? { result: await work(database) } : undefined,
      );
      if (answer !== undefined) return answer.result;
    }
  };

  const recordsOf = (records: Records, part: number): Records => ({
    schema,
    encryption: common.encryption,
    query: (text, values) => records.query(texts[part]!(text), values),
    execute: (text, values) => records.execute(texts[part]!(text), values),
  });

  const createPart = (part: number): Database => {
    const text = texts[part]!;
    const database: Database = {
      ...common,
      query: (given, values, queryOptions) =>
        onPart(part, (node) => node.query(text(given), values, queryOptions)),
      execute: (given, values) => onPart(part, (node) => node.execute(text(given), values)),
      transaction: (work, opening) =>
        onPart(part, (node) => node.transaction((records) => work(recordsOf(records, part)), opening)),
      boundedRead: (given, values, signal) =>
        onPart(part, (node) => node.boundedRead(text(given), values, signal)),
      boundedReads: (work, signal) =>
        onPart(part, (node) =>
          node.boundedReads(
            (read, readPlannedOnce) =>
              work(
                (given, values) => read(text(given), values),
                (given, values) => readPlannedOnce(text(given), values),
              ),
            signal,
          ),
        ),
      grouped: (statement, source) => grouping(statement, source),
      parts: [],
      of: () => database,
    };
    const grouping: Grouping = createGrouping(database, logger);
    database.parts = [database];
    return database;
  };
  const parts = placement.parts.map((_part, index) => createPart(index));

  const partsOf = (threads: Threads): number[] =>
    typeof threads === "string"
      ? [partOf(placement, threads)]
      : [...new Set(threads.map((threadId) => partOf(placement, threadId)))].sort((a, b) => a - b);

  const partOfThread = (threadId: string): number => partOf(placement, threadId);
  const everyPart = parts.map((_part, index) => index);
  /** The places of a statement; undefined: `common`. */
  const placesFor = (
    text: string,
    values: readonly unknown[],
    threads: Threads | null | undefined,
  ): readonly number[] | undefined => {
    const route: Route = routeOf(text);
    if (route.kind === "common") return undefined;
    if (threads !== undefined && threads !== null) {
      const places = partsOf(threads);
      // Each part would store the rows of all.
      if (route.kind === "insert" && places.length > 1)
        throw new Error("This statement would store rows of threads in several parts.");
      return places;
    }
    // Citus finds the parts of the rows.
    if (route.kind === "insert") return undefined;
    return route.kind === "every part" ? everyPart : partsOf((values[route.parameter - 1] ?? []) as Threads);
  };

  const transaction: Database["transaction"] = async (work, opening) => {
    const opened = new Map<Database, { records: Promise<Records>; end(isKept: boolean): Promise<void> }>();
    const begin = (
      database: Database,
      within: (run: (on: Database) => Promise<void>) => Promise<void>,
    ): Promise<Records> => {
      const found = opened.get(database);
      if (found !== undefined) return found.records;
      let finish: (isKept: boolean) => void = () => undefined;
      const kept = new Promise<boolean>((resolve) => (finish = resolve));
      let ended: Promise<void> = Promise.resolve();
      const records = new Promise<Records>((resolve, reject) => {
        ended = within((on) =>
          on.transaction(async (inner) => {
            resolve(inner);
            if (!(await kept)) throw ROLLED_BACK;
          }, opening),
        );
        ended.catch(reject);
      });
      opened.set(database, {
        records,
        end(isKept) {
          finish(isKept);
          return ended.catch((error: unknown) => {
            if (error !== ROLLED_BACK) throw error;
          });
        },
      });
      return records;
    };
    const recordsAt = (part: number): Promise<Records> =>
      begin(nodeAt(nodeNames[part]!).database, (run) => onPart(part, run));
    const commonRecords = (): Promise<Records> => begin(common, (run) => run(common));
    const ask = async <Answer>(
      text: string,
      values: unknown[],
      threads: Threads | null | undefined,
      by: (records: Records) => Promise<Answer>,
    ): Promise<Answer[]> => {
      const places = placesFor(text, values, threads);
      if (places === undefined) return [await by(await commonRecords())];
      const answers: Answer[] = [];
      for (const part of places) answers.push(await by(recordsOf(await recordsAt(part), part)));
      return answers;
    };
    const records: Records = {
      schema,
      encryption: common.encryption,
      partOf: partOfThread,
      query: async <Row>(text: string, values: unknown[] = [], { threads }: { threads?: Threads } = {}) =>
        (await ask(text, values, threads, (on) => on.query<Row>(text, values))).flat(),
      execute: async <Row>(text: string, values: unknown[]) =>
        joined(await ask(text, values, undefined, (on) => on.execute<Row>(text, values))),
    };
    let result;
    try {
      result = await work(records);
    } catch (error) {
      await Promise.allSettled([...opened.values()].map(({ end }) => end(false)));
      throw error;
    }
    // Common tables last: they say that the work is done.
    const inOrder = [...opened].sort(([a], [b]) => Number(a === common) - Number(b === common));
    for (const [index, [, { end }]] of inOrder.entries()) {
      try {
        await end(true);
      } catch (error) {
        await Promise.allSettled(inOrder.slice(index + 1).map(([, rest]) => rest.end(false)));
        throw error;
      }
    }
    return result;
  };

  const joined = <Row>(answers: readonly { rows: Row[]; rowCount: number | null }[]) => ({
    rows: answers.flatMap(({ rows }) => rows),
    rowCount: answers.some(({ rowCount }) => rowCount !== null)
      ? answers.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0)
      : null,
  });

  const all = (): Database[] => [common, ...[...nodes.values()].map(({ database }) => database)];

  return {
    ...common,
    partOf: partOfThread,
    parts,
    of: (threadId) => parts[partOf(placement, threadId)]!,
    async query<Row>(
      text: string,
      values: unknown[] = [],
      queryOptions: { answerMs?: number; threads?: Threads } = {},
    ) {
      const places = placesFor(text, values, queryOptions.threads);
      if (places === undefined) return await common.query<Row>(text, values, queryOptions);
      if (places.length === 1) return await parts[places[0]!]!.query<Row>(text, values, queryOptions);
      return (
        await Promise.all(places.map((part) => parts[part]!.query<Row>(text, values, queryOptions)))
      ).flat();
    },
    async execute<Row>(text: string, values: unknown[]) {
      const places = placesFor(text, values, undefined);
      if (places === undefined) return await common.execute<Row>(text, values);
      return joined(await Promise.all(places.map((part) => parts[part]!.execute<Row>(text, values))));
    },
    grouped: (statement, source) =>
      parts[partOf(placement, statement.threadOf(source))]!.grouped(statement, source),
    transaction,
    isLoss: (error) => all().some((database) => database.isLoss(error)),
    onConnectionLost(listener) {
      for (const { node } of placement.parts) nodeAt(node);
      const ends = all().map((database) => database.onConnectionLost(listener));
      return () => ends.forEach((end) => end());
    },
    async close() {
      await Promise.all([...nodes.values()].map(({ hold }) => hold.close()));
      await Promise.all(all().map((database) => database.close()));
    },
  };
};
