import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

const EXPECT_PUSHES = statement(
  { threadId: "uuid" },
  (sql) => `update threadloom.threads set pushes = true where thread_id = ${sql.threadId} and pushes is null`,
);

/** From now on, ends of the thread's runs make push notifications due. The caller holds the lock. Index: threads_pkey. */
export const expectPushes = async (transaction: Queryable, threadId: string): Promise<void> => {
  await EXPECT_PUSHES.query(transaction, { threadId });
};
