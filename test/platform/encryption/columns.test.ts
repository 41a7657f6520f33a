import { describe, expect, test } from "vitest";
import {
  ASSISTANT_JSON,
  CHECKPOINT_JSON,
  CRON_JSON,
  DELIVERY_JSON,
  ITEM_JSON,
  openOf,
  openRow,
  openRows,
  REPLACED_JSON,
  RUN_JSON,
  THREAD_JSON,
  type JsonColumn,
} from "../../../src/platform/encryption/columns.ts";
import { openJson, parseStoredJson } from "../../../src/platform/encryption/json.ts";
import { cipherOf } from "../../helpers/encryption.ts";

const cipher = cipherOf("a key of a test, of 32 bytes ...", ["secret"]);
const ID = "01a208d7-ed23-7988-9e1a-2522a36f9765";

test("a row without encryption is not touched", () => {
  const rows = [{ thread_id: ID, metadata: { a: 1 } }];
  expect(openRows(undefined, THREAD_JSON, rows)).toBe(rows);
  expect(openRow(cipher, THREAD_JSON, rows[0]!)).toBe(rows[0]);
});

test("a row is opened by its ids, however its caller writes them", () => {
  const stored = ASSISTANT_JSON.context.sealed(cipher, { said: "hello" }, { assistant_id: ID.toUpperCase() });
  const row = { assistant_id: ID, name: "A", context: parseStoredJson(stored) };
  expect(openRow(cipher, ASSISTANT_JSON, row)).toEqual({ ...row, context: { said: "hello" } });
});

test("no answer is made of a row that nobody has opened", () => {
  const stored = THREAD_JSON.metadata.sealed(cipher, { secret: "said" }, { thread_id: ID });
  const row = { thread_id: ID, metadata: parseStoredJson(stored) };
  expect(() => JSON.stringify(row)).toThrow("read without opening them");
  expect(JSON.stringify(openRow(cipher, THREAD_JSON, row))).toContain("said");
});

const run = { run_id: "r1", thread_id: "t1", assistant_id: "a1" };
const others = { run_id: "r2", thread_id: "t2", assistant_id: "a2" };
const DECLARED = [
  ["assistants", ASSISTANT_JSON, run, others],
  ["threads", THREAD_JSON, run, others],
  ["runs", RUN_JSON, run, others],
  ["runs of one thread", RUN_JSON, run, { ...run, run_id: "r2" }],
  ["deliveries", DELIVERY_JSON, run, others],
  ["what runs replaced", REPLACED_JSON, run, others],
  ["crons", CRON_JSON, { cron_id: "c1" }, { cron_id: "c2" }],
  ["items", ITEM_JSON, { namespace: ["a", "b"], key: "c" }, { namespace: ["a"], key: "b c" }],
  [
    "checkpoints",
    CHECKPOINT_JSON,
    { checkpoint_ns: "", checkpoint_id: "1" },
    { checkpoint_ns: "", checkpoint_id: "2" },
  ],
] as const;

/** A column whatever its rows and values are. */
type AnyColumn = JsonColumn<unknown, unknown>;
const SAID = "canary-90af";
const VALUES: Readonly<Record<string, unknown>> = {
  config: { configurable: { secret: SAID } },
  replaced_config: { configurable: { secret: SAID } },
  context: { secret: SAID },
  metadata: { secret: SAID },
  replaced_metadata: { secret: SAID },
};

describe.each(DECLARED)("columns of %s", (_, columns, own, other) => {
  test.each(Object.entries(columns as object) as [string, AnyColumn][])(
    "%s opens in its own row alone, also when it is encrypted with another key",
    (name, column) => {
      const value = VALUES[name] ?? JSON.stringify({ input: SAID });
      const stored = column.sealed(cipher, value, own);
      expect(stored).not.toContain(SAID);
      const opened = (key: unknown): string =>
        JSON.stringify(openOf(cipher, { [name]: column }, key, { [name]: parseStoredJson(stored) }));
      expect(opened(own)).toContain(SAID);
      expect(opened(other)).not.toContain(SAID);
      const resealed = () => openJson(cipher, column.resealed(cipher, stored, other), column.places(other));
      if (name.endsWith("metadata")) expect(resealed()).not.toContain(SAID);
      else expect(resealed).toThrow("stands where it was not stored");
    },
  );
});

test("a run shows what the database merged into it from its thread and its assistant, and nothing of others", () => {
  const merged = (key: typeof run): string => {
    const parts = [
      ASSISTANT_JSON.config.sealed(cipher, { a: "of the assistant" }, key),
      THREAD_JSON.config.sealed(cipher, { t: "of the thread" }, key),
    ];
    return JSON.stringify(Object.assign({}, ...parts.map((part) => JSON.parse(part) as object)));
  };
  const shown = (key: typeof run) =>
    openRow(cipher, RUN_JSON, { ...run, config: parseStoredJson(merged(key)) });
  expect(shown(run).config).toEqual({ a: "of the assistant", t: "of the thread" });
  expect(JSON.stringify(shown(others).config)).not.toMatch(/of the/);
});
