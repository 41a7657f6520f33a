import type { Queryable } from "../../../platform/database/database.ts";

/** Changes no row, but fails where the database accepts no writes. */
const ASSERT_WRITABLE = "update threadloom.runs set attempt = attempt where false";

/** Throws if the database is unreachable or read-only (a standby): no lease can be renewed then. */
export const assertWritable = async (queryable: Queryable): Promise<void> => {
  await queryable.query(ASSERT_WRITABLE);
};
