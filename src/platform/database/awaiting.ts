import { sqlState } from "../domain/errors.ts";
import type { Logger } from "../lib/logger.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { isPassing, retryPassing } from "./passing-faults.ts";
import { connectProbe } from "./probe.ts";

/** For a server that accepts and stays silent, or an address that drops packets. */
const CONNECT_MS = 5_000;
const LOG_EVERY_MS = 10_000;

interface AwaitingOptions {
  connectionString: string;
  /** Without the password. */
  name: string;
  /** 0: one try. */
  seconds: number;
  signal: AbortSignal;
  logger: Logger;
}

const connectOnce = async (connectionString: string): Promise<void> => {
  const client = await connectProbe(connectionString, CONNECT_MS);
  void client.end().catch(() => undefined);
};

/** Throws the last error after `seconds`, and lasting errors (a wrong password, a missing database) at once. */
export const awaitDatabase = async (options: AwaitingOptions): Promise<void> => {
  const { connectionString, name, seconds, signal, logger } = options;
  const startedAt = performance.now();
  let loggedAt: number | undefined;
  const logWait = (error: unknown): void => {
    const now = performance.now();
    if (loggedAt !== undefined && now - loggedAt < LOG_EVERY_MS) return;
    loggedAt = now;
    const waited = Math.round((now - startedAt) / 1_000);
    const reason = (error instanceof Error && error.message) || sqlState(error);
    logger.warn(
      { reason },
      `the database at ${name} is not there yet; waiting for it, ${waited} of ${seconds} s, Ctrl-C ends it`,
    );
  };
  const connected = retryPassing(() => connectOnce(connectionString), {
    forMs: seconds * 1_000,
    isWanted: () => !signal.aborted,
    after: (error) => {
      if (!isPassing(error) || seconds === 0) return false;
      logWait(error);
      return true;
    },
  });
  // An abort does not wait for the current try.
  await untilAborted(signal, connected);
  if (loggedAt !== undefined) logger.info(`the database at ${name} is there`);
};
