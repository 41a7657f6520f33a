import { describe, expect, test } from "vitest";
import { ENCRYPTED_COLUMNS } from "../../../src/platform/encryption/columns.ts";
import {
  Encryption,
  type AnyColumn,
  type EncryptedTable,
} from "../../../src/platform/encryption/encryption.ts";
import { decryptJson, parseStoredJson } from "../../../src/platform/encryption/json.ts";
import { cipherOf } from "../../helpers/encryption.ts";

const cipher = cipherOf("a key of a test, of 32 bytes ...", ["secret"]);
const encryption = new Encryption(cipher);
const ID = "01a208d7-ed23-7988-9e1a-2522a36f9765";

test("a row without encryption is not changed", () => {
  const rows = [{ thread_id: ID, metadata: { a: 1 } }];
  expect(new Encryption(undefined).decryptedRows("threads", rows)).toBe(rows);
  expect(encryption.decrypted("threads", rows[0]!)).toBe(rows[0]);
});

test("a row is decrypted with its ids, in any spelling of its caller", () => {
  const key = { assistant_id: ID.toUpperCase() };
  const stored = encryption.stored("assistants", "context", { said: "hello" }, key);
  const row = { assistant_id: ID, name: "A", context: parseStoredJson(stored) };
  expect(encryption.decrypted("assistants", row)).toEqual({ ...row, context: { said: "hello" } });
});

test("an encrypted row is never returned in an answer", () => {
  const stored = encryption.stored("threads", "metadata", { secret: "said" }, { thread_id: ID });
  const row = { thread_id: ID, metadata: parseStoredJson(stored) };
  expect(() => JSON.stringify(row)).toThrow("read without opening them");
  expect(JSON.stringify(encryption.decrypted("threads", row))).toContain("said");
});

test("without keys, values are stored unchanged, and a text encrypted with a missing key is refused", () => {
  const off = new Encryption(undefined);
  const key = { cron_id: "c1" };
  expect(off.stored("crons", "metadata", { a: "enc1:" }, key)).toBe('{"a":"enc1:"}');
  expect(off.stored("crons", "payload", "said", key)).toBe("said");
  expect(off.stored("crons", "user_id", null, key)).toBeNull();
  const payload = encryption.stored("crons", "payload", "said", key);
  expect(() => off.decrypted("crons", { ...key, payload })).toThrow(`with the key '${cipher.keyId}'`);
});

const run = { run_id: "R1", thread_id: "T1", assistant_id: "A1" };
const others = { run_id: "r2", thread_id: "t2", assistant_id: "a2" };
const [checkpoint, otherCheckpoint] = ["C1", "c2"].map((id) => ({ checkpoint_ns: "n|1", checkpoint_id: id }));

/** For each table: the ids of two rows, and the encryption places of each column in the first row. */
const DECLARED: Readonly<
  Record<EncryptedTable, readonly [own: object, other: object, places: Readonly<Record<string, string[]>>]>
> = {
  assistants: [
    run,
    others,
    {
      config: ["json assistants config a1"],
      context: ["json assistants context a1"],
      metadata: ["json assistants metadata a1"],
    },
  ],
  assistant_versions: [
    run,
    others,
    {
      config: ["json assistants config a1"],
      context: ["json assistants context a1"],
      metadata: ["json assistants metadata a1"],
    },
  ],
  crons: [
    { cron_id: "C1" },
    { cron_id: "c2" },
    {
      metadata: ["json crons metadata c1"],
      payload: ["cron C1"],
      user_id: ["cron-user C1"],
      auth_user: ["json crons auth_user c1"],
    },
  ],
  store_items: [
    { namespace: ["a", "b"], key: "C" },
    { namespace: ["a"], key: "b C" },
    { value: ['json store_items value [["a","b"],"C"]'] },
  ],
  threads: [
    run,
    others,
    {
      metadata: ["json threads metadata t1"],
      config: ["json threads config t1"],
      interrupts: ["json threads interrupts t1"],
      error: ["json threads error t1"],
    },
  ],
  runs: [
    run,
    others,
    {
      metadata: ["json runs metadata r1", "json threads metadata t1", "json assistants metadata a1"],
      config: ["json runs config r1", "json threads config t1", "json assistants config a1"],
      context: ["json runs context r1", "json threads config t1", "json assistants context a1"],
      kwargs: ["json runs kwargs r1"],
      error: ["json runs error r1"],
      replaced_metadata: ["json threads metadata t1"],
      replaced_config: ["json threads config t1"],
      auth_user: ["json runs auth_user r1"],
      webhook: ["webhook R1"],
    },
  ],
  run_events: [{ ...run, seq: 7 }, { ...run, seq: 8 }, { data: ["event R1 7"] }],
  run_traces: [{ ...run, attempt: 1, part: 0 }, { ...run, attempt: 1, part: 1 }, { spans: ["trace R1 1 0"] }],
  deliveries: [
    { ...run, delivery_id: "d1" },
    { ...others, delivery_id: "d2" },
    {
      error: ["json runs error r1", "json threads error t1"],
      metadata: ["json runs metadata r1", "json threads metadata t1", "json assistants metadata a1"],
      config: ["json runs config r1", "json threads config t1", "json assistants config a1"],
      context: ["json runs context r1", "json threads config t1", "json assistants context a1"],
      kwargs: ["json runs kwargs r1"],
      url: ["webhook R1"],
      last_error: ["delivery last_error d1"],
      configuration: ["delivery configuration d1"],
      final_values: ["values T1"],
    },
  ],
  checkpoint_contents: [{ hash: "1f" }, { hash: "2f" }, { content: ["content 1f"] }],
  checkpoints: [
    { ...checkpoint, task_id: "" },
    { ...otherCheckpoint, task_id: "" },
    {
      metadata: ["json checkpoints metadata c1 n|1"],
      metadata_text: ["json checkpoints metadata c1 n|1"],
      record: ["checkpoint c1 n|1"],
      writes: ["writes c1  n|1"],
    },
  ],
  checkpoint_writes: [
    { ...checkpoint, task_id: "t1" },
    { ...checkpoint, task_id: "t2" },
    { writes: ["writes c1 t1 n|1"] },
  ],
};

const SAID = "canary-90af";
const valueOf = (name: string): unknown => {
  if (/metadata|context/.test(name)) return { secret: SAID };
  if (name.endsWith("config")) return { configurable: { secret: SAID } };
  const json = JSON.stringify({ input: SAID });
  return name === "final_values" ? Buffer.from(json) : json;
};

describe.each(Object.entries(DECLARED))("columns of %s", (table, [own, other, places]) => {
  const columns = ENCRYPTED_COLUMNS[table as EncryptedTable] as Readonly<Record<string, AnyColumn>>;

  test("are bound to the places that stored values were encrypted for", () => {
    const found = Object.entries(columns).map(([name, column]) => [name, column.places(own)]);
    expect(Object.fromEntries(found)).toEqual(places);
  });

  test.each(Object.entries(columns))(
    "%s opens in its own row alone, also when it is encrypted with another key",
    (name, column) => {
      const stored = column.encrypted(cipher, valueOf(name), own) as string | Buffer;
      expect(String(stored)).not.toContain(SAID);
      const isJson = /metadata/.test(name) || column.type.startsWith("json");
      const shown = (key: object): string => {
        if (isJson) return decryptJson(cipher, String(stored), column.places(key));
        // A digest follows the address.
        return cipher.decrypt(String(stored).split(" ")[0]!, ...column.places(key));
      };
      const asText = Buffer.isBuffer(stored) ? stored.toString("base64") : stored;
      expect(shown(own)).toContain(SAID);
      expect(() => column.reencrypted(cipher, asText, own)).not.toThrow();
      if (name !== "webhook") {
        const read = isJson ? parseStoredJson(String(stored)) : stored;
        const decrypted = column.decrypted!(cipher, read, own);
        expect(Buffer.isBuffer(decrypted) ? decrypted.toString() : JSON.stringify(decrypted)).toContain(SAID);
      }
      const reencrypted = () => column.reencrypted(cipher, asText, other);
      if (name.includes("metadata")) {
        expect(shown(other)).not.toContain(SAID);
        expect(decryptJson(cipher, reencrypted(), column.places(other))).not.toContain(SAID);
      } else expect(reencrypted).toThrow("was changed or moved");
    },
  );
});

test("a run shows the values merged from its thread and its assistant, and nothing of others", () => {
  const merged = (key: typeof run): string => {
    const parts = [
      encryption.stored("assistants", "config", { a: "of the assistant" }, key),
      encryption.stored("threads", "config", { t: "of the thread" }, key),
    ];
    return JSON.stringify(Object.assign({}, ...parts.map((part) => JSON.parse(part) as object)));
  };
  const shown = (key: typeof run) =>
    encryption.decrypted("runs", { ...run, config: parseStoredJson(merged(key)) });
  expect(shown(run).config).toEqual({ a: "of the assistant", t: "of the thread" });
  expect(JSON.stringify(shown(others).config)).not.toMatch(/of the/);
});
