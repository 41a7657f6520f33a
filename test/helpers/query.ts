import pg from "pg";

/** Queries the database of a test server directly, for anything that its API does not offer. */
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
