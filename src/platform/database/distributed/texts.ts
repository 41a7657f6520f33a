import { DEFAULT_SCHEMA } from "../schema.ts";

/** To which parts a statement goes. `parameter` counts from 1. */
export type Route =
  | { kind: "common" }
  | { kind: "thread" | "threads"; parameter: number }
  /** Stores rows of threads without a comparison. */
  | { kind: "insert" }
  | { kind: "every part" };

/** The code has some hundred statements; searches have variants. */
const TEXTS_AT_MOST = 2_000;

const remembered = <Value>(find: (text: string) => Value): ((text: string) => Value) => {
  const known = new Map<string, Value>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= TEXTS_AT_MOST) known.clear();
    const value = find(text);
    known.set(text, value);
    return value;
  };
};

const tablePattern = (schema: string, tables: Iterable<string>): string =>
  `(?:${DEFAULT_SCHEMA}|"${schema}")\\."?(${[...tables].join("|")})"?(?![\\w"])`;

/** Reads the thread from the first comparison `thread_id = $1`, or `thread_id = any($1`. */
export const routes = (schema: string, ofThreads: Iterable<string>): ((text: string) => Route) => {
  const namesThreads = new RegExp(tablePattern(schema, ofThreads));
  const insertsThreads = new RegExp(`insert into ${tablePattern(schema, ofThreads)}`);
  return remembered((text): Route => {
    if (!namesThreads.test(text)) return { kind: "common" };
    const one = /\bthread_id"? = \$(\d+)/.exec(text);
    if (one !== null) return { kind: "thread", parameter: Number(one[1]) };
    const several = /(?<!\bnot (?:\w+\.)?)\bthread_id"? = any ?\(\$(\d+)/.exec(text);
    if (several !== null) return { kind: "threads", parameter: Number(several[1]) };
    return insertsThreads.test(text) ? { kind: "insert" } : { kind: "every part" };
  });
};

/** Puts the names of a part's shards in place of the tables' names. */
export const shardTexts = (
  schema: string,
  tables: Readonly<Record<string, string>>,
): ((text: string) => string) => {
  const shards = new Map(Object.entries(tables));
  const names = tablePattern(schema, Object.keys(tables));
  // A column may be qualified by the table's own name.
  const qualifiers = `(?<![\\w."])"?(${Object.keys(tables).join("|")})"?\\.(?=["a-z])`;
  const pattern = new RegExp(`${names}|${qualifiers}`, "g");
  return remembered((text) =>
    text.replace(pattern, (_found, table: string | undefined, qualifier: string | undefined) =>
      table === undefined ? `"${shards.get(qualifier!)!}".` : `"${schema}"."${shards.get(table)!}"`,
    ),
  );
};
