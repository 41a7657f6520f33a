import type { Database } from "../../src/platform/database/database.ts";

/** Calls `work` once, before the first statement that reads large strings. */
export const beforeStrings = (database: Database, work: () => Promise<unknown>): Database => {
  let isDone = false;
  return {
    ...database,
    async query<Row>(text: string, values?: unknown[], options?: object) {
      if (text.startsWith("select hash, content") && !isDone) {
        isDone = true;
        await work();
      }
      return await database.query<Row>(text, values, options);
    },
  };
};
