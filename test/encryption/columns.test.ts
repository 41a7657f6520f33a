import { expect, test } from "vitest";
import { ASSISTANT_JSON, openRow, openRows, THREAD_JSON } from "../../src/encryption/columns.ts";
import { parseStoredJson } from "../../src/encryption/json.ts";
import { cipherOf } from "../helpers/encryption.ts";

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
