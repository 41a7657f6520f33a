import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

/** Index: threads_pkey. */
const TURNS = statement(
  { threadId: "uuid" },
  (sql) => `select turns from threadloom.threads where thread_id = ${sql.threadId}`,
);

/** The caller holds the thread's lock. */
export const turnsOfThread = async (transaction: Queryable, threadId: string): Promise<number | undefined> =>
  (await TURNS.query<{ turns: number }>(transaction, { threadId }))[0]?.turns;
