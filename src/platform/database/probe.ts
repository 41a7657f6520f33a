import pg from "pg";

const TIMEOUT_MS = 10_000;

/** A pool would hide the connection that answers. Throws errors of `pg`. */
export const withProbe = async <T>(
  connectionString: string,
  work: (client: pg.Client) => T | Promise<T>,
): Promise<T> => {
  const client = new pg.Client({
    connectionString,
    application_name: "threadloom probe",
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  });
  // Without a listener a lost connection ends the process.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
};
