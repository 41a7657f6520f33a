import type { KeyRecord } from "../../access/keys/repository.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";

export const jsonOf = (record: KeyRecord) => ({
  id: record.key_id,
  name: record.name,
  scopes: record.scopes,
  status: record.status,
  created_at: timestamp(record.created_at),
  expires_at: record.expires_at === null ? null : timestamp(record.expires_at),
  last_used_at: record.last_used_at === null ? null : timestamp(record.last_used_at),
  revoked_at: record.revoked_at === null ? null : timestamp(record.revoked_at),
});

const minute = (time: Date): string => `${time.toISOString().slice(0, 16).replace("T", " ")} UTC`;

export const createdText = ({ key_id, name, scopes, expires_at }: KeyRecord): string =>
  [
    `The key '${name}' (${key_id}) has the scopes ${scopes.join(", ")} and ` +
      `${expires_at === null ? "never expires" : `expires on ${minute(expires_at)}`}.`,
    "It is shown this once: only its hash is stored. Servers know it within a second. Callers send it as the header X-Api-Key.",
    "",
  ].join("\n");

/** Revoked keys keep a server closed, so a list without them must mention them. */
export const listText = (records: readonly KeyRecord[], withRevoked: boolean): string => {
  if (records.length === 0) {
    return withRevoked
      ? "There are no keys.\n"
      : "There are no keys. Revoked ones, which keep a server closed, are listed with --all.\n";
  }
  const rows = [
    ["ID", "NAME", "SCOPES", "STATUS", "CREATED", "EXPIRES", "LAST USED"],
    ...records.map((record) => [
      record.key_id,
      record.name,
      record.scopes.join(","),
      record.status,
      minute(record.created_at),
      record.expires_at === null ? "never" : minute(record.expires_at),
      record.last_used_at === null ? "never" : minute(record.last_used_at),
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
};
