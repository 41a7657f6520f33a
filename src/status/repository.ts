import type { Database } from "../database/database.ts";

/** Two partial indexes of the queue answer it: runs that have ended are not looked at. */
const COUNT_UNFINISHED = `select
  (select count(*) from threadloom.runs where status = 'pending')::int as pending,
  (select count(*) from threadloom.runs where status = 'running')::int as running`;

/** `on` also in a standby. Not an update of nothing: that waits for whoever changes the table, and a probe would, too. */
const IS_WRITABLE = "select current_setting('transaction_read_only') = 'off' as writable";

export const createStatusRepository = (database: Database) => ({
  /** Whether the database takes writes: one that was failed over answers, but takes none. Throws what it says if it is away. */
  async isWritable(): Promise<boolean> {
    const [row] = await database.query<{ writable: boolean }>(IS_WRITABLE);
    return row?.writable === true;
  },

  async countUnfinishedRuns(): Promise<{ pending: number; running: number }> {
    const [row] = await database.query<{ pending: number; running: number }>(COUNT_UNFINISHED);
    return row ?? { pending: 0, running: 0 };
  },
});

export type StatusRepository = ReturnType<typeof createStatusRepository>;
