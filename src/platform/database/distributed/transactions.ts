import type { Answer, Database, Records } from "../database.ts";
import type { Threads } from "../queryable.ts";
import type { Nodes } from "./nodes.ts";
import { recordsOfPart } from "./parts.ts";

/** Thrown into the transactions of nodes that are to be rolled back with another one. */
const ROLLED_BACK = Symbol("rolled back");

interface Opened {
  records: Promise<Records>;
  ended: Promise<void>;
  end(isKept: boolean): Promise<void>;
}

/** A transaction that stays open until `end`. */
const openTransaction = (on: Database, opening: string | undefined): Opened => {
  let finish: (isKept: boolean) => void = () => undefined;
  const kept = new Promise<boolean>((resolve) => (finish = resolve));
  let ended: Promise<void> = Promise.resolve();
  const records = new Promise<Records>((resolve, reject) => {
    ended = on.transaction(async (inner) => {
      resolve(inner);
      if (!(await kept)) throw ROLLED_BACK;
    }, opening);
    ended.catch(reject);
  });
  return {
    records,
    ended,
    end(isKept) {
      finish(isKept);
      return ended.catch((error: unknown) => {
        if (error !== ROLLED_BACK) throw error;
      });
    },
  };
};

export const joined = <Row>(answers: readonly Answer<Row>[]): Answer<Row> => ({
  rows: answers.flatMap(({ rows }) => rows),
  rowCount: answers.some(({ rowCount }) => rowCount !== null)
    ? answers.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0)
    : null,
});

interface TransactionParts {
  common: Database;
  nodes: Pick<Nodes, "databaseOf" | "onPart">;
  /** By part. */
  texts: readonly ((text: string) => string)[];
  partOf(threadId: string): number;
  /** The parts of a statement; undefined: `common`. */
  placesFor(text: string, values: readonly unknown[], threads?: Threads): readonly number[] | undefined;
}

/**
 * A transaction begins on each node that its statements reach. A crash between the commits of two nodes keeps some: the
 * common tables, which say that the work is done, commit last.
 */
export const createTransactions = ({ common, nodes, texts, partOf, placesFor }: TransactionParts) => {
  const transaction: Database["transaction"] = async (work, opening) => {
    const opened = new Map<Database, Opened>();
    const openOn = (database: Database): Opened => {
      const found = opened.get(database) ?? openTransaction(database, opening);
      opened.set(database, found);
      return found;
    };
    /** The part may move until the transaction on its node is open; then the node's lock is held until its end. */
    const recordsOfNode = async (part: number): Promise<Records> => {
      const known = opened.get(nodes.databaseOf(part));
      if (known !== undefined) return await known.records;
      return await new Promise<Records>((resolve, reject) => {
        nodes
          .onPart(part, (on) => {
            const isOpen = opened.has(on);
            const { records, ended } = openOn(on);
            records.then(resolve, reject);
            // The call that opened the transaction holds the node until its end.
            return isOpen ? Promise.resolve() : ended;
          })
          .catch(reject);
      });
    };
    const ask = async <Result>(
      text: string,
      values: readonly unknown[],
      threads: Threads | undefined,
      by: (records: Records) => Promise<Result>,
    ): Promise<Result[]> => {
      const places = placesFor(text, values, threads);
      if (places === undefined) return [await by(await openOn(common).records)];
      const answers: Result[] = [];
      for (const part of places) {
        answers.push(await by(recordsOfPart(await recordsOfNode(part), texts[part]!)));
      }
      return answers;
    };
    const endAll = (of: readonly Opened[], isKept: boolean) =>
      Promise.allSettled(of.map(({ end }) => end(isKept)));
    let result;
    try {
      result = await work({
        schema: common.schema,
        encryption: common.encryption,
        objects: common.objects,
        partOf,
        query: async <Row>(text: string, values: unknown[] = [], { threads }: { threads?: Threads } = {}) =>
          (await ask(text, values, threads, (on) => on.query<Row>(text, values))).flat(),
        execute: async <Row>(text: string, values: unknown[]) =>
          joined(await ask(text, values, undefined, (on) => on.execute<Row>(text, values))),
      });
    } catch (error) {
      await endAll([...opened.values()], false);
      throw error;
    }
    const ofCommon = opened.get(common);
    opened.delete(common);
    const inOrder = [...opened.values(), ...(ofCommon === undefined ? [] : [ofCommon])];
    for (const [index, { end }] of inOrder.entries()) {
      try {
        await end(true);
      } catch (error) {
        await endAll(inOrder.slice(index + 1), false);
        throw error;
      }
    }
    return result;
  };
  return transaction;
};
