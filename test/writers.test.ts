import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { roomOf } from "./rooms.ts";

/** The room that writes each table: one for each table, or the reasons for more. */

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const SOURCE = join(ROOT, "src");

const WRITERS: Record<string, readonly string[]> = {
  // Key rotation writes every table that holds encrypted columns.
  $: ["key-rotation"],
  // A trigger of its migration writes it.
  api_key_changes: [],
  api_keys: ["access"],
  assistants: ["assistants"],
  assistant_versions: ["assistants"],
  checkpoints: ["checkpoints"],
  checkpoint_contents: ["checkpoints"],
  checkpoint_names: ["checkpoints"],
  checkpoint_writes: ["checkpoints"],
  crons: ["crons"],
  deliveries: ["outbox"],
  encrypting_servers: ["database"],
  encryption_keys: ["database"],
  migrations: ["database"],
  // queue/ removes the events of a run in the statement that removes the run.
  run_events: ["events", "queue"],
  // queue/ stores what a run recorded in the statement that ends the run; traces/ removes what is old.
  run_traces: ["engine", "queue"],
  model_usage: ["engine", "queue"],
  runs: ["queue"],
  store_items: ["store"],
  store_vectors: ["store"],
  workers: ["queue"],
  // threads/ writes the record. queue/ takes a thread for a run and frees it in the statement that writes the run, because a second
  // statement would be a round trip for every run; it also creates the thread of a run without one, and deletes threads whose runs end with
  // them. checkpoints/ records a changed state in the statement that stores the state.
  threads: ["checkpoints", "queue", "threads"],
  unused_objects: ["checkpoints"],
};

/** Columns of `threads` about its runs, which only the queue writes. */
const OF_THE_QUEUE = ["unfinished_runs", "turns", "resting_status"];
/** Columns of a thread that checkpoints/ may write. */
const OF_CHECKPOINTS = ["state_updated_at", "version"];

const sources = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => /\.(ts|js)$/.test(file))
  .map((file) => ({ room: basename(roomOf(file) ?? ""), text: readFileSync(join(SOURCE, file), "utf8") }));

const SQL_WRITE = /\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate)\s+threadloom\.([\w$]+)/gi;
const KYSELY_WRITE = /\.(?:insertInto|updateTable|deleteFrom|mergeInto|replaceInto)\(\s*"(\w+)/g;

const tablesWrittenIn = (text: string): string[] =>
  [...text.matchAll(SQL_WRITE), ...text.matchAll(KYSELY_WRITE)].map(([, table = ""]) => table);

test("each table has one writer, or a reason", () => {
  const writers: Record<string, Set<string>> = {};
  for (const { room, text } of sources) {
    for (const table of tablesWrittenIn(text)) (writers[table] ??= new Set()).add(room);
  }
  const found = Object.entries(writers).map(([table, rooms]) => [table, [...rooms].sort()]);
  expect(Object.fromEntries(found)).toEqual(
    Object.fromEntries(Object.entries(WRITERS).filter(([, rooms]) => rooms.length > 0)),
  );
});

test("every table of a migration has a writer", () => {
  const folder = join(ROOT, "migrations");
  const made = readdirSync(folder).flatMap((file) =>
    [...readFileSync(join(folder, file), "utf8").matchAll(/^create table (\w+)/gim)].map(
      ([, table]) => table,
    ),
  );
  expect(made.length).toBeGreaterThan(10);
  expect(made.filter((table) => !((table ?? "") in WRITERS))).toEqual([]);
});

/** The columns of the table `threads` that a source assigns, by `update`, `insert`, or `on conflict`. */
const columnsOfThreads = (text: string): string[] => {
  const END = '(?=\\bwhere\\b|\\bfrom\\b|\\breturning\\b|`|"|;)';
  const assigned = [
    ...text.matchAll(new RegExp(`update\\s+threadloom\\.threads\\b[^\`]*?\\bset\\b([^\`]*?)${END}`, "gi")),
    ...(/insert\s+into\s+threadloom\.threads\b/i.test(text)
      ? text.matchAll(new RegExp(`do\\s+update\\s+set\\b([^\`]*?)${END}`, "gi"))
      : []),
  ].flatMap(([, set = ""]) => [...set.matchAll(/(?:^|,)\s*(\w+)\s*=/g)].map(([, column = ""]) => column));
  const inserted = [...text.matchAll(/insert\s+into\s+threadloom\.threads\s*\(([^)]*)\)/gi)].flatMap(
    ([, columns = ""]) => columns.split(",").map((column) => column.trim()),
  );
  return [...assigned, ...inserted];
};

test("only the queue writes whether a run is on a thread", () => {
  const columnsOf = (room: string): string[] => [
    ...new Set(
      sources.filter((source) => source.room === room).flatMap(({ text }) => columnsOfThreads(text)),
    ),
  ];
  expect(columnsOf("queue")).toEqual(expect.arrayContaining(OF_THE_QUEUE));
  expect(columnsOf("threads")).toEqual(expect.arrayContaining(["metadata", "interrupts", "expires_at"]));
  expect(columnsOf("threads").filter((column) => OF_THE_QUEUE.includes(column))).toEqual([]);
  expect(columnsOf("checkpoints").sort()).toEqual(OF_CHECKPOINTS);
});
