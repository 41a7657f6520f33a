import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DEFAULT_SCHEMA } from "../../src/platform/database/schema.ts";
import type { Execution } from "../../src/engine/attempt/execution.ts";
import { createHeartbeat } from "../../src/engine/lease/heartbeat.ts";
import type { StopReason } from "../../src/engine/executors/executor.ts";
import type { AttemptSelector } from "../../src/engine/queue/attempts.ts";
import type { Queue } from "../../src/engine/queue/queue.ts";
import type { HeartbeatRow } from "../../src/engine/queue/sql/renew.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** Renewals by the event loop. The clock is moved by hand, and nothing is connected. */

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const HEARTBEAT_MS = 2_000;
const LEASE_SECONDS = 10;
/** A permanent error: temporary ones are retried after a pause that a test cannot skip. */
const REFUSED = Object.assign(new Error("not you"), { code: "28P01" });
const settled = () => vi.advanceTimersByTimeAsync(0);

type Asked = { over: "own" | "shared"; runs: string[]; leaseSeconds: number };

/** A heartbeat without a thread. */
const aHeartbeat = () => {
  const asked: Asked[] = [];
  const options: unknown[] = [];
  const failing = new Map<Asked["over"], Error>();
  const cancelled = new Map<string, HeartbeatRow["cancel_action"]>();
  const lost = new Set<string>();
  let held: Promise<void> | undefined;
  const queue = {
    async renew(
      attempts: readonly AttemptSelector[],
      leaseSeconds: number,
      connection: Parameters<Queue["renew"]>[2],
    ): Promise<HeartbeatRow[]> {
      const over = connection !== undefined && "pool" in connection ? "own" : "shared";
      asked.push({ over, runs: attempts.map(({ runId, attempt }) => `${runId}/${attempt}`), leaseSeconds });
      if (over === "shared") await connection?.query("renew", []);
      await held;
      const failure = failing.get(over);
      if (failure !== undefined) throw failure;
      return attempts
        .filter(({ runId }) => !lost.has(runId))
        .map(({ runId, attempt }) => ({
          run_id: runId,
          attempt,
          cancel_action: cancelled.get(runId) ?? null,
          read_elsewhere: false,
        }));
    },
  } as Partial<Queue> as Queue;
  const { logger, lines } = listeningLogger();
  const heartbeat = createHeartbeat({
    onReadElsewhere: () => undefined,
    queue,
    connectionString: "postgres://127.0.0.1:1/nowhere",
    shared: {
      query<Row>(_text: string, _values?: unknown[], given?: unknown) {
        options.push(given);
        return Promise.resolve<Row[]>([]);
      },
    },
    schema: DEFAULT_SCHEMA,
    preparedStatements: true,
    leaseSeconds: LEASE_SECONDS,
    heartbeatSeconds: HEARTBEAT_MS / 1_000,
    blockedLoopSeconds: 0,
    logger,
  });
  return {
    heartbeat,
    asked,
    options,
    failing,
    cancelled,
    lost,
    holdAnswers(): () => void {
      let release = (): void => undefined;
      held = new Promise((resolve) => (release = resolve));
      return release;
    },
    begin(runId: string, attempt = 1) {
      const stops: StopReason[] = [];
      const execution: Execution = {
        runId,
        threadId: `thread of ${runId}`,
        attempt,
        stop: (reason) => void stops.push(reason),
        wantValues: () => undefined,
        ended: Promise.resolve(undefined),
      };
      heartbeat.begun(execution);
      return { execution, stops };
    },
    warnings: () =>
      lines
        .map((line) => JSON.parse(line) as { level: number; msg: string; code?: string; reason?: string })
        .filter(({ level }) => level >= 40)
        .map(({ msg, code, reason }) => `${msg} (${code ?? "?"}: ${reason ?? "?"})`),
    async beats(count = 1): Promise<Asked[]> {
      asked.length = 0;
      await vi.advanceTimersByTimeAsync(count * HEARTBEAT_MS);
      return [...asked];
    },
  };
};

describe("a heartbeat", () => {
  test("renews all held leases in one statement, and sends none while it holds none", async () => {
    const { heartbeat, begin, beats, asked, warnings } = aHeartbeat();
    expect(await beats(3)).toEqual([]);
    const { execution } = begin("a");
    begin("b", 2);
    expect(await beats()).toEqual([{ over: "own", runs: ["a/1", "b/2"], leaseSeconds: LEASE_SECONDS }]);
    heartbeat.ended(execution);
    expect((await beats(2)).map(({ runs }) => runs)).toEqual([["b/2"], ["b/2"]]);
    asked.length = 0;
    heartbeat.renew();
    await settled();
    expect(asked.map(({ runs }) => runs)).toEqual([["b/2"]]);
    await heartbeat.close();
    expect(await beats(3)).toEqual([]);
    expect(warnings()).toEqual([]);
  });

  test("stops lost runs and those to be cancelled, and no others", async () => {
    const { heartbeat, begin, beats, lost, cancelled } = aHeartbeat();
    const runs = ["lost", "cancelled", "kept"].map((runId) => begin(runId).stops);
    lost.add("lost");
    cancelled.set("cancelled", "rollback");
    await beats();
    expect(runs).toEqual([[{ kind: "lease-lost" }], [{ kind: "cancel", action: "rollback" }], []]);
    await heartbeat.close();
  });

  test("stops nothing that ended during its query, and no later attempt of it", async () => {
    const { heartbeat, begin, beats, lost, holdAnswers } = aHeartbeat();
    const ended = begin("ended");
    const earlier = begin("again");
    for (const runId of ["ended", "again"]) lost.add(runId);
    const release = holdAnswers();
    await beats();
    heartbeat.ended(ended.execution);
    const later = begin("again", 2);
    heartbeat.ended(earlier.execution);
    release();
    await settled();
    expect([ended.stops, earlier.stops, later.stops]).toEqual([[], [], []]);
    // The end of the earlier attempt was not the end of the later one.
    await beats();
    expect(later.stops).toEqual([{ kind: "lease-lost" }]);
    await heartbeat.close();
  });

  test("sends the next statement only after the answer to the last one", async () => {
    const { heartbeat, begin, beats, holdAnswers } = aHeartbeat();
    begin("a");
    const release = holdAnswers();
    expect(await beats(3)).toHaveLength(1);
    release();
    expect(await beats(2)).toHaveLength(2);
    await heartbeat.close();
  });
});

describe("a heartbeat whose own connection is refused", () => {
  test("renews at once over the shared connections, waits for the answer as long as for its own, and logs it", async () => {
    const { heartbeat, begin, beats, failing, options, warnings } = aHeartbeat();
    const { stops } = begin("a");
    failing.set("own", REFUSED);
    const asked = await beats();
    expect(asked.slice(0, 2)).toMatchObject([
      { over: "own", runs: ["a/1"] },
      { over: "shared", runs: ["a/1"], leaseSeconds: LEASE_SECONDS },
    ]);
    expect(options[0]).toEqual({ answerMs: 2_500 });
    expect(warnings()).toEqual([
      "the connection for leases failed; the leases were renewed over the pool (28P01: not you)",
    ]);
    expect(stops).toEqual([]);
    // It retries its own connection, and stops using the shared ones once that answers.
    failing.clear();
    await beats(2);
    expect((await beats(3)).map(({ over }) => over)).toEqual(["own", "own", "own"]);
    await heartbeat.close();
  });

  test("stops lost runs and those to be cancelled over the shared connections", async () => {
    const { heartbeat, begin, beats, failing, lost, cancelled } = aHeartbeat();
    failing.set("own", REFUSED);
    lost.add("lost");
    cancelled.set("cancelled", "interrupt");
    const [one, other] = [begin("lost"), begin("cancelled")];
    await beats();
    expect(one.stops).toContainEqual({ kind: "lease-lost" });
    expect(other.stops).toContainEqual({ kind: "cancel", action: "interrupt" });
    await heartbeat.close();
  });

  test("uses one shared connection at a time, however often its own is refused", async () => {
    const { heartbeat, begin, beats, failing, holdAnswers } = aHeartbeat();
    begin("a");
    failing.set("own", REFUSED);
    await beats();
    const release = holdAnswers();
    heartbeat.renew();
    await beats(5);
    const shared = (asked: Asked[]): number => asked.filter(({ over }) => over === "shared").length;
    expect(shared(await beats(5))).toBe(0);
    release();
    expect(shared(await beats(5))).toBeGreaterThan(1);
    await heartbeat.close();
  });

  test("logs once in each lease that the shared ones fail, too", async () => {
    const { heartbeat, begin, beats, failing, warnings } = aHeartbeat();
    begin("a");
    failing.set("own", REFUSED).set("shared", REFUSED);
    await beats(3);
    expect(warnings()).toEqual(["leases could not be renewed (28P01: not you)"]);
    await beats(7);
    expect(warnings().length).toBeGreaterThanOrEqual(2);
    expect(warnings().length).toBeLessThanOrEqual(3);
    await heartbeat.close();
  });

  test("waits for its open statement before it ends", async () => {
    const { heartbeat, begin, beats, failing, holdAnswers } = aHeartbeat();
    begin("a");
    const release = holdAnswers();
    failing.set("own", REFUSED);
    await beats();
    let closed = false;
    const closing = heartbeat.close().then(() => (closed = true));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(closed).toBe(false);
    release();
    await vi.advanceTimersByTimeAsync(60_000);
    await closing;
    expect(await beats(5)).toEqual([]);
  });
});
