import type { Queryable } from "../../../platform/database/database.ts";

/** Changes nothing, and is refused all the same where nothing may be written. */
const ASSERT_WRITABLE = "update threadloom.runs set attempt = attempt where false";

/** Throws if the database is away or takes no writes, as a standby: then no lease can be renewed. */
export const assertWritable = async (queryable: Queryable): Promise<void> => {
  await queryable.query(ASSERT_WRITABLE);
};
