import { addressesOf, Client } from "./addresses.js";

const TIMEOUT_MS = 10_000;

/** A pool would hide the connection that answers. Throws errors of `pg`. */
export const withProbe = async <T>(
  connectionString: string,
  work: (client: Client) => T | Promise<T>,
): Promise<T> => {
  const client = new Client({
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

/** The one of several addresses that takes writes. Throws errors of `pg`. */
export const findWritable = async (connectionString: string): Promise<string> => {
  const addresses = addressesOf(connectionString);
  if (addresses.length === 1) return connectionString;
  let failure: unknown;
  for (let tries = 0; tries < addresses.length; tries += 1) {
    try {
      return await withProbe(connectionString, ({ address }) => address!);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
};
