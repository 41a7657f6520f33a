import pg from "pg";

const TIMEOUT_MS = 10_000;

export const connectProbe = async (connectionString: string, timeoutMs: number): Promise<pg.Client> => {
  const client = new pg.Client({
    connectionString,
    application_name: "threadloom probe",
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  // Without a listener a lost connection ends the process.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    void client.end().catch(() => undefined);
    throw error;
  }
};

/** A pool would hide the connection that answers. Throws errors of `pg`. */
export const withProbe = async <T>(
  connectionString: string,
  work: (client: pg.Client) => T | Promise<T>,
): Promise<T> => {
  const client = await connectProbe(connectionString, TIMEOUT_MS);
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
};
