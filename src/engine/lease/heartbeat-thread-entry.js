// @ts-check
/**
 * JavaScript, because a thread with TypeScript needs tsx: 23 MiB and 175 ms of CPU instead of 11 MiB and 50
 * ms. Imports no more than `pg` needs for the same reason.
 */
import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { clearInterval, setInterval, setTimeout } from "node:timers";
import { parentPort, workerData } from "node:worker_threads";
import pg from "pg";

/**
 * @typedef {import("./heartbeat-thread.ts").ThreadSetup} ThreadSetup
 * @typedef {import("./heartbeat-thread.ts").ThreadOrder} ThreadOrder
 * @typedef {import("./heartbeat-thread.ts").ThreadReport} ThreadReport
 * @typedef {import("../queue/sql/renew.ts").HeartbeatRow} HeartbeatRow
 */

/** As in heartbeat-thread.ts. */
const SIGNS_OF_LIFE = 0;
const BEATS = 1;
/** As in held-attempts.ts. */
const INTS_PER_SLOT = 9;
const ID_BYTES = 16;
const STANDARD_OUTPUT = 1;
/** As in the last log line of a process that ends otherwise. */
const RUNS_NAMED = 10;
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
  const { statement, held, counters, heartbeatMs, blockedLoopMs, leaseSeconds, timeoutMs, retriesMs } = setup;
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

  const bytes = Buffer.from(held.buffer);
  /** @param {number} start */
  const idAt = (start) => {
    const hex = bytes.toString("hex", start, start + ID_BYTES);
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  };
  const heldAttempts = () => {
    const found = [];
    for (let slot = 0; slot < held.length; slot += INTS_PER_SLOT) {
      const attempt = Atomics.load(held, slot);
      if (attempt === 0) continue;
      const start = (slot + 1) * Int32Array.BYTES_PER_ELEMENT;
      found.push({ threadId: idAt(start), runId: idAt(start + ID_BYTES), attempt });
    }
    return found;
  };

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

  let guardedSign = seenSign;
  let beatsWithoutSign = 0;
  /** Counts beats instead of time: after a laptop resumes, the thread may beat before a healthy loop runs. */
  const endIfBlocked = () => {
    const sign = Atomics.load(counters, SIGNS_OF_LIFE);
    beatsWithoutSign = sign === guardedSign ? beatsWithoutSign + 1 : 0;
    guardedSign = sign;
    if (!setup.endsProcess || beatsWithoutSign * heartbeatMs <= blockedLoopMs) return;
    const runs = heldAttempts().map(({ runId }) => runId);
    if (runs.length === 0) return;
    const msg = `the event loop was blocked for ${blockedLoopMs / 1_000} seconds; the process is ended`;
    // In the logger's format: the logger belongs to the loop.
    const line = { level: 60, time: Date.now(), runs: runs.slice(0, RUNS_NAMED), msg };
    try {
      writeSync(STANDARD_OUTPUT, `${JSON.stringify(line)}\n`);
    } finally {
      process.kill(process.pid, "SIGKILL");
    }
  };

  let failures = 0;
  let closing = false;
  const renewHeld = async () => {
    const asked = heldAttempts();
    if (isLoopBlocked() || asked.length === 0) return;
    try {
      const { rows } = await pool.query({
        ...statement,
        values: [
          asked.map(({ threadId }) => threadId),
          asked.map(({ runId }) => runId),
          asked.map(({ attempt }) => attempt),
          leaseSeconds,
        ],
      });
      const found = /** @type {HeartbeatRow[]} */ (rows);
      if (
        found.length < asked.length ||
        found.some((row) => row.cancel_action !== null || row.read_elsewhere)
      ) {
        report({ kind: "renewed", asked, rows: found });
      }
      failures = 0;
    } catch (error) {
      report({ kind: "failed", ...describe(error) });
      const pause = retriesMs[failures];
      failures += 1;
      // A retry does no harm, and without it a lease may end.
      if (pause !== undefined && !closing) setTimeout(() => closing || renew(), pause);
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
    endIfBlocked();
    renew();
  }, heartbeatMs);

  const close = async () => {
    closing = true;
    clearInterval(timer);
    again = false;
    await renewing;
    await pool.end().catch(() => undefined);
    loop.close();
  };

  loop.on("message", (/** @type {ThreadOrder} */ order) => {
    if (order === "close") return void close();
    // The running renewal may have read the rows before the change.
    again = renewing !== undefined;
    renew();
  });
  Atomics.add(counters, BEATS, 1);
};

if (parentPort !== null) beat(workerData, parentPort);
