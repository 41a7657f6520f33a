import pg from "pg";

export interface Writes {
  rows: number;
  /** Without full-page images, which depend on the database's last checkpoint. */
  walBytes: number;
}

/** Each written row has one of these records, whichever statement or foreign key wrote it. */
export const ROW_RECORDS = "^Heap/(INSERT|UPDATE|HOT_UPDATE|DELETE)|^Heap2/MULTI_INSERT";

/**
 * Reads the writes to one database from the WAL. Other databases of the same PostgreSQL may be written to meanwhile.
 * @param connectionString of a superuser
 */
export const openWrites = async (connectionString: string) => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  // Only flushed records can be read: the commit below flushes all earlier ones.
  await client.query("set synchronous_commit = on");
  await client.query("create extension if not exists pg_walinspect");
  return {
    async position(): Promise<string> {
      const { rows } = await client.query<{ position: string }>(
        "select pg_current_wal_insert_lsn()::text as position",
      );
      return rows[0]!.position;
    },
    /** The writes from this position of the WAL until now. */
    async since(position: string): Promise<Writes> {
      await client.query("select pg_logical_emit_message(true, 'count', '')");
      const { rows } = await client.query<Writes>(
        `with records as materialized (
           select nullif(xid::text, '0') as xid, record_length - fpi_length as bytes,
             resource_manager || '/' || record_type as type,
             coalesce(block_ref ~ (select format('rel \\d+/%s/', oid) from pg_database where datname = current_database()), false) as is_here
           from pg_get_wal_records_info($1, pg_current_wal_flush_lsn()))
         select count(*) filter (where is_here and type ~ $2)::int as rows,
           coalesce(sum(bytes) filter (where is_here or xid in (select xid from records where is_here)), 0)::int as "walBytes"
         from records`,
        [position, ROW_RECORDS],
      );
      return rows[0]!;
    },
    close: () => client.end(),
  };
};
