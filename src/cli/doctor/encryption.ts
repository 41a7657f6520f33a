import type pg from "pg";
import { inSchema } from "../../platform/database/schema.ts";
import { newCipher, type Cipher } from "../../platform/encryption/cipher.ts";
import { walkEncrypted } from "../../server/key-rotation/walk.ts";
import { fail, ok, warn, type Check } from "./checks.ts";

const COUNT_MS = 10_000;

/** Text of callers that only looks encrypted does not count. Undefined after COUNT_MS. */
const rowsByMissingKey = async (
  client: pg.Client,
  schema: string,
  cipher: Cipher,
): Promise<Map<string, number> | undefined> => {
  const until = Date.now() + COUNT_MS;
  const qualified = inSchema(schema);
  const query = async <Row>(text: string, values?: unknown[]): Promise<Row[]> => {
    try {
      const leftMs = until - Date.now();
      if (leftMs <= 0) throw new Error("The time is over.");
      await client.query(`set local statement_timeout = ${leftMs}`);
      return (await client.query(qualified(text), values)).rows as Row[];
    } catch (cause) {
      // A plain Error, because the walk retries errors of the database.
      throw new Error("The rows could not be counted.", { cause });
    }
  };
  try {
    // Behind a pooler a setting may last only for a transaction.
    await client.query("begin read only");
    const tables = await walkEncrypted({ database: { query }, cipher, writes: false });
    const counts = new Map<string, number>();
    for (const { byMissingKey } of tables)
      for (const [id, rows] of byMissingKey) counts.set(id, (counts.get(id) ?? 0) + rows);
    return counts;
  } catch {
    return undefined;
  } finally {
    await client.query("rollback");
  }
};

export const checkEncryption = async (
  client: pg.Client,
  schema: string,
  cipher: Cipher | undefined,
): Promise<Check> => {
  const { rows } = await client.query<{ key_id: string }>(
    inSchema(schema)("select key_id from threadloom.encryption_keys order by created_at"),
  );
  const known = rows.map((row) => row.key_id);
  const name = "Encryption";
  if (cipher === undefined && known.length === 0)
    return ok(name, "off: LANGGRAPH_AES_KEY is not set, and nothing is encrypted");
  const configured = cipher?.keyIds ?? [];
  const needed = known.filter((id) => !configured.includes(id));
  const counts = await rowsByMissingKey(client, schema, cipher ?? newCipher());
  const lacking = [...new Set([...needed, ...(counts?.keys() ?? [])])];
  if (lacking.length > 0) {
    const text = lacking
      .map((id) => {
        const rows = counts === undefined ? "rows that could not be counted" : `${counts.get(id) ?? 0} rows`;
        return `the key '${id}' is not configured (${rows})`;
      })
      .join("\n");
    return needed.length > 0
      ? fail(
          name,
          text,
          "Add the key to LANGGRAPH_AES_KEY, after the first key. If no row needs it, run 'threadloom encryption forget'.",
        )
      : warn(
          name,
          text,
          "Servers start, but show these rows encrypted. Add the key to LANGGRAPH_AES_KEY, after the first key.",
        );
  }
  const uncounted = counts === undefined ? "; there are too many rows to count those of other keys" : "";
  return ok(
    name,
    known.includes(cipher?.keyId ?? "")
      ? `the key '${cipher?.keyId}' encrypts${uncounted}`
      : `the key '${cipher?.keyId}' will encrypt after the first start${uncounted}`,
  );
};
