import pg from "pg";

/** Asks the database of a test server directly, for what its API does not show or do. */
export const query = async <Row extends pg.QueryResultRow>(
  { connectionString }: { connectionString: string },
  text: string,
  values: unknown[] = [],
): Promise<Row[]> => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
};
