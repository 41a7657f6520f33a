import pg from "pg";
import { createBackOff } from "../lib/back-off.ts";
import type { Logger } from "../lib/logger.ts";
import { statement } from "./statement.ts";

/** A half-open connection would otherwise stay silent for ever. */
const LIFE_SIGN_MS = 5_000;

interface ListeningOptions {
  /** Not through a pooler in transaction mode. */
  connectionString: string;
  applicationName: string;
  /** Shows others that this process lives. */
  processId: string;
  onNotification(payload: string | undefined): void;
  logger: Logger;
}

/** Until the connection ends, others see that this process lives (queue/sql/missed-heartbeats.ts). */
const SHOW_LIFE = statement(
  { processId: "text" },
  (sql) => `select pg_advisory_lock_shared(hashtextextended(${sql.processId}, 0))`,
);

/** Reconnects when the connection is lost or silent. Rejects if the first connection fails. */
export const listenTo = async (channel: string, options: ListeningOptions) => {
  const { connectionString, applicationName, processId, onNotification, logger } = options;
  const reconnecting = createBackOff();
  let client: pg.Client | undefined;
  let closed = false;
  let reconnectTimer: NodeJS.Timeout | undefined;
  let lost = false;

  const listen = async (): Promise<void> => {
    const fresh = new pg.Client({
      connectionString,
      application_name: applicationName,
      connectionTimeoutMillis: LIFE_SIGN_MS,
      keepAlive: true,
    });
    fresh.on("error", (error) => {
      if (!closed && client === fresh)
        logger.warn({ err: error }, "the listening connection was lost; reconnecting");
      drop(fresh);
    });
    fresh.on("end", () => drop(fresh));
    fresh.on("notification", (message) => onNotification(message.payload));
    client = fresh;
    await fresh.connect();
    await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
    await fresh.query(SHOW_LIFE.compile({ processId }));
    reconnecting.reset();
    if (lost) logger.info("the listening connection is back again");
    lost = false;
  };
  const drop = (dropped: pg.Client): void => {
    if (client !== dropped) return;
    client = undefined;
    lost = true;
    dropped.end().catch(() => undefined);
    if (!closed) {
      reconnectTimer = setTimeout(() => {
        listen().catch((error: unknown) => {
          logger.debug({ err: error }, "the listening connection could not be opened yet");
          if (client !== undefined) drop(client);
        });
      }, reconnecting.next());
    }
  };
  const lifeSign = setInterval(() => {
    const asked = client;
    if (asked === undefined) return;
    const silence = setTimeout(() => {
      logger.warn("the listening connection does not answer; reconnecting");
      drop(asked);
    }, LIFE_SIGN_MS - 1_000);
    asked.query("select 1").then(
      () => clearTimeout(silence),
      () => {
        clearTimeout(silence);
        drop(asked);
      },
    );
  }, LIFE_SIGN_MS);
  lifeSign.unref();

  await listen();
  return {
    get isOpen(): boolean {
      return client !== undefined;
    },
    async close(): Promise<void> {
      closed = true;
      clearInterval(lifeSign);
      clearTimeout(reconnectTimer);
      const last = client;
      client = undefined;
      await last?.end().catch(() => undefined);
    },
  };
};
