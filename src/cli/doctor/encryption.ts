import type pg from "pg";
import { areUnbound } from "../../database/encryption-keys.ts";
import { inSchema } from "../../database/schema.ts";
import type { Cipher } from "../../encryption/cipher.ts";
import { SEALED_TABLES } from "../../resealing/tables.ts";
import { fail, ok, warn, type Check } from "./checks.ts";

/** Reading all rows of a large database takes long: then no number is told. */
const COUNT_MS = 10_000;

/** What a seal is at least: the id of its key, and 36 bytes in base64. Ids have no character that means something here. */
const sealedWithout = (ids: readonly string[]): string =>
  `enc1:(${ids.length === 0 ? "" : `(?!${ids.join("|")})`}[A-Za-z0-9_-]{6}):[A-Za-z0-9+/]{46}`;

/** Rows by the id of the key, of those that are not among `ids`. Undefined: nobody could count them in time. */
const rowsSealedWithout = async (
  client: pg.Client,
  schema: string,
  ids: readonly string[],
): Promise<Map<string, number> | undefined> => {
  const counts = new Map<string, number>();
  const until = Date.now() + COUNT_MS;
  try {
    for (const { name, columns } of SEALED_TABLES) {
      await client.query(`set statement_timeout = ${Math.max(1, until - Date.now())}`);
      const texts = columns.map(([column, type]) =>
        type === "bytea" ? `encode(t.${column}, 'escape')` : `t.${column}::text`,
      );
      const { rows } = await client.query<{ id: string; count: string }>(
        inSchema(schema)(`select found.id, count(*) as count from threadloom.${name} t, lateral (
          select distinct substring(c.text from $1) as id from unnest(array[${texts.join(", ")}]) as c (text)) found
          where found.id is not null group by 1`),
        [sealedWithout(ids)],
      );
      for (const { id, count } of rows) counts.set(id, (counts.get(id) ?? 0) + Number(count));
    }
    return counts;
  } catch {
    return undefined;
  } finally {
    await client.query("reset statement_timeout");
  }
};

/** Whether the keys are there that something is or may be encrypted with. */
export const checkEncryption = async (
  client: pg.Client,
  schema: string,
  cipher: Cipher | undefined,
): Promise<Check> => {
  const { rows } = await client.query<{ key_id: string; proof: string }>(
    inSchema(schema)("select key_id, proof from threadloom.encryption_keys order by created_at"),
  );
  const known = rows.map((row) => row.key_id);
  const name = "Encryption";
  if (cipher === undefined && known.length === 0)
    return ok(name, "off: LANGGRAPH_AES_KEY is not set, and nothing is encrypted");
  if (areUnbound(cipher, rows))
    return fail(
      name,
      "an earlier version has encrypted what is stored, and no value is bound to its row",
      "Stop all servers of that version and run 'threadloom encryption reseal' once.",
    );
  const configured = cipher?.keyIds ?? [];
  const needed = known.filter((id) => !configured.includes(id));
  const counts = await rowsSealedWithout(client, schema, configured);
  const lacking = [...new Set([...needed, ...(counts?.keys() ?? [])])];
  if (lacking.length > 0) {
    const text = lacking
      .map((id) => {
        const told = counts === undefined ? "rows that could not be counted" : `${counts.get(id) ?? 0} rows`;
        return `the key '${id}' is not configured (${told})`;
      })
      .join("\n");
    return needed.length > 0
      ? fail(
          name,
          text,
          "Add it to LANGGRAPH_AES_KEY behind the key that encrypts, or 'threadloom encryption forget' it where no row needs it.",
        )
      : warn(
          name,
          text,
          "Servers start, but show these rows as they are stored: add it to LANGGRAPH_AES_KEY behind the key that encrypts.",
        );
  }
  const unsaid = counts === undefined ? "; there are too many rows to look for those of other keys" : "";
  return ok(
    name,
    known.includes(cipher?.keyId ?? "")
      ? `the key '${cipher?.keyId}' encrypts${unsaid}`
      : `the key '${cipher?.keyId}' will encrypt from the first start on${unsaid}`,
  );
};
