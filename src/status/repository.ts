import type { Database } from "../database/database.ts";

/** Two partial indexes of the queue answer it: runs that have ended are not looked at. */
const COUNT_UNFINISHED = `select
  (select count(*) from threadloom.runs where status = 'pending')::int as pending,
  (select count(*) from threadloom.runs where status = 'running')::int as running`;

export const createStatusRepository = (database: Database) => ({
  /** Throws what the database says if it is away. */
  async ping(): Promise<void> {
    await database.query("select 1");
  },

  async countUnfinishedRuns(): Promise<{ pending: number; running: number }> {
    const [row] = await database.query<{ pending: number; running: number }>(COUNT_UNFINISHED);
    return row ?? { pending: 0, running: 0 };
  },
});

export type StatusRepository = ReturnType<typeof createStatusRepository>;
