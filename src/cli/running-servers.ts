import type pg from "pg";
import { hasTable } from "../platform/database/has-table.ts";
import { inSchema } from "../platform/database/schema.ts";
import { statement } from "../platform/database/statement.ts";
import { listenerName } from "../platform/database/signals.ts";
import { StartError } from "../platform/domain/errors.ts";
import { SILENT_SECONDS } from "../engine/queue/hosting.ts";

/**
 * A living server's lock. A session's name proves nothing, because a pooler keeps named sessions after a server's
 * death.
 */
const LIVES = statement(
  { name: "text" },
  (sql) => `select from pg_stat_activity a join pg_locks l on l.pid = a.pid
  where a.application_name = ${sql.name} and a.datname = current_database() and l.locktype = 'advisory' and l.mode = 'ShareLock' limit 1`,
);

/** Also finds workers that have lost that lock. */
const SEEN = `select ceil(extract(epoch from now() - max(seen_at)))::int as seconds from threadloom.workers
  where seen_at > now() - interval '${SILENT_SECONDS} seconds'`;

export const assertNoServers = async (client: pg.Client, schema: string): Promise<void> => {
  const living = await client.query(LIVES.compile({ name: listenerName(schema) }));
  if (living.rowCount === 1) throw new StartError("A server uses this database. Stop all servers first.");
  if (!(await hasTable(client, schema, "workers"))) return;
  const { rows } = await client.query<{ seconds: number | null }>(inSchema(schema)(SEEN));
  const seconds = rows[0]?.seconds ?? undefined;
  if (seconds === undefined) return;
  throw new StartError(
    `A server was active ${Math.max(1, seconds)} seconds ago. Stop all servers first. A killed server counts as active for ${SILENT_SECONDS} seconds.`,
  );
};
