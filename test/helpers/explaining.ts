import type { Database } from "../../src/platform/database/database.ts";

interface Plan {
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
}

/**
 * A database that executes each statement under `explain`, and returns no rows. `blocks()`: how many blocks the
 * statements since the last call have read.
 */
export const explainingDatabase = (database: Database): { explaining: Database; blocks: () => number } => {
  let read = 0;
  const query = async <Row>(text: string, values?: unknown[]): Promise<Row[]> => {
    const [row] = await database.query<{ "QUERY PLAN": { Plan: Plan }[] }>(
      `explain (analyze, buffers, format json) ${text}`,
      values,
    );
    const { Plan: plan } = row!["QUERY PLAN"][0]!;
    read += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    return [];
  };
  return {
    explaining: { ...database, query, boundedRead: query },
    blocks() {
      const blocks = read;
      read = 0;
      return blocks;
    },
  };
};
