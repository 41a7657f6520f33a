import { addressesOf, Client } from "./addresses.js";

const TIMEOUT_MS = 10_000;

/** Tries each of several addresses once. Throws the error of the last one. */
export const connectProbe = async (connectionString: string, timeoutMs: number): Promise<Client> => {
  for (let tries = addressesOf(connectionString).length; ; tries -= 1) {
    const client = new Client({
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
      if (tries === 1) throw error;
    }
  }
};

/** A pool would hide the connection that answers. Throws errors of `pg`. */
export const withProbe = async <T>(
  connectionString: string,
  work: (client: Client) => T | Promise<T>,
): Promise<T> => {
  const client = await connectProbe(connectionString, TIMEOUT_MS);
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
};

/** The one of several addresses that takes writes. Throws errors of `pg`. */
export const findWritable = async (connectionString: string): Promise<string> =>
  addressesOf(connectionString).length === 1
    ? connectionString
    : await withProbe(connectionString, ({ address }) => address!);
