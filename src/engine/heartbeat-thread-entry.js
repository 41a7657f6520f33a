// @ts-check
/**
 * The program of the heartbeat's thread. JavaScript with types in comments, because a thread has no loader for
 * TypeScript unless it brings one along: 23 MiB and 175 ms of CPU with tsx instead of 11 MiB and 50 ms. For the same
 * reason it loads nothing of this project, and `pg` alone.
 */
import { performance } from "node:perf_hooks";
import { clearInterval, setInterval } from "node:timers";
import { parentPort, workerData } from "node:worker_threads";
import pg from "pg";

/**
 * @typedef {import("./heartbeat-thread.ts").ThreadSetup} ThreadSetup
 * @typedef {import("./heartbeat-thread.ts").ThreadOrder} ThreadOrder
 * @typedef {import("./heartbeat-thread.ts").ThreadReport} ThreadReport
 * @typedef {import("./queue.ts").HeartbeatRow} HeartbeatRow
 */

/** As in heartbeat-thread.ts. */
const SIGNS_OF_LIFE = 0;
const BEATS = 1;
/** As in database.ts. */
const IDLE_TIMEOUT_MS = 300_000;
const KEEP_ALIVE_MS = 10_000;

/** @param {unknown} error */
const describe = (error) => {
  const code = /** @type {{ code?: unknown }} */ (error)?.code;
  return {
    reason: error instanceof Error && error.message !== "" ? error.message : String(code ?? error),
    code: typeof code === "string" ? code : undefined,
  };
};

/**
 * @param {ThreadSetup} setup
 * @param {import("node:worker_threads").MessagePort} loop
 */
const beat = (setup, loop) => {
  const { statement, counters, heartbeatMs, blockedLoopMs, leaseSeconds, timeoutMs } = setup;
  const report = (/** @type {ThreadReport} */ message) => loop.postMessage(message);
  const pool = new pg.Pool({
    connectionString: setup.connectionString,
    application_name: setup.applicationName,
    max: 1,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  });
  // Without these listeners a terminated backend ends the thread; see database.ts.
  pool.on("error", (error) => report({ kind: "lost-connection", ...describe(error) }));
  pool.on("connect", (client) => client.on("error", () => undefined));

  /** @type {Map<string, number>} Run -> attempt. */
  const held = new Map();
  let seenSign = Atomics.load(counters, SIGNS_OF_LIFE);
  let seenAt = performance.now();
  const isLoopBlocked = () => {
    const sign = Atomics.load(counters, SIGNS_OF_LIFE);
    if (sign !== seenSign) {
      seenSign = sign;
      seenAt = performance.now();
    }
    return performance.now() - seenAt > blockedLoopMs;
  };

  const renewHeld = async () => {
    if (held.size === 0 || isLoopBlocked()) return;
    const asked = [...held].map(([runId, attempt]) => ({ runId, attempt }));
    try {
      const { rows } = await pool.query({
        ...statement,
        values: [asked.map(({ runId }) => runId), asked.map(({ attempt }) => attempt), leaseSeconds],
      });
      const found = /** @type {HeartbeatRow[]} */ (rows);
      if (found.length < asked.length || found.some((row) => row.cancel_action !== null)) {
        report({ kind: "renewed", asked, rows: found });
      }
    } catch (error) {
      report({ kind: "failed", ...describe(error) });
    }
  };

  /** @type {Promise<void> | undefined} */
  let renewing;
  let again = false;
  const renew = () => {
    renewing ??= renewHeld().finally(() => {
      renewing = undefined;
      if (!again) return;
      again = false;
      renew();
    });
  };
  const timer = setInterval(() => {
    Atomics.add(counters, BEATS, 1);
    renew();
  }, heartbeatMs);

  const close = async () => {
    clearInterval(timer);
    again = false;
    await renewing;
    await pool.end().catch(() => undefined);
    loop.close();
  };

  loop.on("message", (/** @type {ThreadOrder} */ order) => {
    switch (order.kind) {
      case "held":
        for (const { runId, attempt } of order.ended) if (held.get(runId) === attempt) held.delete(runId);
        for (const { runId, attempt } of order.begun) held.set(runId, attempt);
        break;
      case "renew":
        // What is under way may have read the rows before whatever this is about.
        again = renewing !== undefined;
        renew();
        break;
      case "close":
        void close();
    }
  });
  Atomics.add(counters, BEATS, 1);
};

if (parentPort !== null) beat(workerData, parentPort);
