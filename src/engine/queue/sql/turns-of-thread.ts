import type { Queryable } from "../../../platform/database/database.ts";

/** Index: threads_pkey. */
const TURNS = "select turns from threadloom.threads where thread_id = $1";

/** The caller holds the thread's lock. */
export const turnsOfThread = async (transaction: Queryable, threadId: string): Promise<number | undefined> =>
  (await transaction.query<{ turns: number }>(TURNS, [threadId]))[0]?.turns;
