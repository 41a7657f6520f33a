import { describe, expect, test } from "vitest";
import {
  ASSISTANT_JSON,
  CHECKPOINT_JSON,
  CRON_JSON,
  DELIVERY_JSON,
  ITEM_JSON,
  decryptColumns,
  decryptRow,
  decryptRows,
  REPLACED_JSON,
  RUN_JSON,
  THREAD_JSON,
  type JsonColumn,
} from "../../../src/platform/encryption/columns.ts";
import { decryptJson, parseStoredJson } from "../../../src/platform/encryption/json.ts";
import { cipherOf } from "../../helpers/encryption.ts";

const cipher = cipherOf("a key of a test, of 32 bytes ...", ["secret"]);
const ID = "01a208d7-ed23-7988-9e1a-2522a36f9765";

test("a row without encryption is not touched", () => {
  const rows = [{ thread_id: ID, metadata: { a: 1 } }];
  expect(decryptRows(undefined, THREAD_JSON, rows)).toBe(rows);
  expect(decryptRow(cipher, THREAD_JSON, rows[0]!)).toBe(rows[0]);
});

test("a row is opened by its ids, however its caller writes them", () => {
  const stored = ASSISTANT_JSON.context.encrypted(
    cipher,
    { said: "hello" },
    { assistant_id: ID.toUpperCase() },
  );
  const row = { assistant_id: ID, name: "A", context: parseStoredJson(stored) };
  expect(decryptRow(cipher, ASSISTANT_JSON, row)).toEqual({ ...row, context: { said: "hello" } });
});

test("no answer is made of a row that nobody has opened", () => {
  const stored = THREAD_JSON.metadata.encrypted(cipher, { secret: "said" }, { thread_id: ID });
  const row = { thread_id: ID, metadata: parseStoredJson(stored) };
  expect(() => JSON.stringify(row)).toThrow("read without opening them");
  expect(JSON.stringify(decryptRow(cipher, THREAD_JSON, row))).toContain("said");
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
      const stored = column.encrypted(cipher, value, own);
      expect(stored).not.toContain(SAID);
      const decrypted = (key: unknown): string =>
        JSON.stringify(decryptColumns(cipher, { [name]: column }, key, { [name]: parseStoredJson(stored) }));
      expect(decrypted(own)).toContain(SAID);
      expect(decrypted(other)).not.toContain(SAID);
      const reencrypted = () =>
        decryptJson(cipher, column.reencrypted(cipher, stored, other), column.places(other));
      if (name.endsWith("metadata")) expect(reencrypted()).not.toContain(SAID);
      else expect(reencrypted).toThrow("stands where it was not stored");
    },
  );
});

test("a run shows what the database merged into it from its thread and its assistant, and nothing of others", () => {
  const merged = (key: typeof run): string => {
    const parts = [
      ASSISTANT_JSON.config.encrypted(cipher, { a: "of the assistant" }, key),
      THREAD_JSON.config.encrypted(cipher, { t: "of the thread" }, key),
    ];
    return JSON.stringify(Object.assign({}, ...parts.map((part) => JSON.parse(part) as object)));
  };
  const shown = (key: typeof run) =>
    decryptRow(cipher, RUN_JSON, { ...run, config: parseStoredJson(merged(key)) });
  expect(shown(run).config).toEqual({ a: "of the assistant", t: "of the thread" });
  expect(JSON.stringify(shown(others).config)).not.toMatch(/of the/);
});
