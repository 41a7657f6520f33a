import type { Queryable } from "../../../platform/database/database.ts";

export const ASSERT_WRITABLE = "update threadloom.runs set attempt = attempt where false";

/** Throws if the database is unreachable or read-only (a standby). */
export const assertWritable = async (queryable: Queryable): Promise<void> => {
  await queryable.query(ASSERT_WRITABLE);
};
