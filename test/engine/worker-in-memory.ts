import { vi } from "vitest";
import type { Signal } from "../../src/platform/database/signals.ts";
import type { CancelAction, ClaimedRunRow } from "../../src/platform/database/tables.ts";
import type { StopReason } from "../../src/engine/executors/executor.ts";
import type { RunEnding } from "../../src/engine/attempt/conclusion.ts";
import type { Execution, ExecutionEvents, Executor } from "../../src/engine/attempt/execution.ts";
import type { Waiting } from "../../src/engine/queue/sql/find-waiting.ts";
import type { Queue } from "../../src/engine/queue/queue.ts";
import { createWorker } from "../../src/engine/worker/worker.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** A worker between an in-memory queue and graphs that end when a test says so, with vitest's clock. */

export const POLL_MS = 1_000;
export const RESET = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
export const REFUSED = Object.assign(new Error("connect ECONNREFUSED"), {
  code: "ECONNREFUSED",
  syscall: "connect",
});
export const FASTER = Object.assign(new Error("duplicate key"), { code: "23505" });

export const aRun = (run_id: string, more: Partial<ClaimedRunRow> = {}): ClaimedRunRow =>
  ({
    run_id,
    thread_id: `thread of ${run_id}`,
    attempt: 1,
    lost_attempts: 0,
    resumable: false,
    ...more,
  }) as ClaimedRunRow;
export const ending = (othersWait = false) => ({ status: "success", othersWait }) as RunEnding;
/** Lets all started work proceed as far as possible. */
export const settled = () => vi.advanceTimersByTimeAsync(0);

interface Here {
  creatorIsHere: boolean;
  graphEnded(): void;
  release(ending?: RunEnding): void;
}

/** A worker with two slots by default. */
export const aWorker = (concurrency = 2) => {
  const waiting: ClaimedRunRow[] = [];
  const asked: number[] = [];
  const did: string[] = [];
  const here = new Map<string, Here>();
  const stops = new Map<string, StopReason[]>();
  let failures: Error[] = [];
  const handingBack: { failure?: Error; action?: CancelAction } = {};
  let unknown: ClaimedRunRow[] | Error = [];
  let waitingAtPolls: Waiting | Error = { runs: true, deliveries: false };
  let held: Promise<void> | undefined;
  let receive: ((signal: Signal) => void) | undefined;
  const queue = {
    graphIds: ["test"],
    claimedAtOnce: 20,
    limitsRuns: false,
    findWaiting: () =>
      waitingAtPolls instanceof Error ? Promise.reject(waitingAtPolls) : Promise.resolve(waitingAtPolls),
    goesAlone: ({ lost_attempts }: ClaimedRunRow) => lost_attempts >= 2,
    async claim(
      _worker: string,
      _leaseSeconds: number,
      limit: number,
      { withAlone }: { withAlone: boolean },
    ) {
      asked.push(limit);
      await held;
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      const taken = waiting.filter((run) => withAlone || !queue.goesAlone(run)).slice(0, limit);
      for (const run of taken) waiting.splice(waiting.indexOf(run), 1);
      return taken;
    },
    async listUnknown(_worker: string, known: readonly string[]) {
      did.push(`looked for unknown ones beside ${known.join()}`);
      if (unknown instanceof Error) throw unknown;
      return await Promise.resolve(unknown);
    },
    async handBack({ runId }: { runId: string }) {
      await Promise.resolve();
      const failure = handingBack.failure;
      if (failure !== undefined) throw failure;
      if (handingBack.action !== undefined) return handingBack.action;
      did.push(`handed ${runId} back`);
      return undefined;
    },
    giveUpLease({ runId, attempt }: { runId: string; attempt: number }) {
      did.push(`gave the lease of ${runId} up in attempt ${attempt}`);
      return Promise.resolve();
    },
  } as unknown as Queue;
  const executor = {
    aloneAtMost: 4,
    execute(run: ClaimedRunRow, creatorIsHere: boolean, events: ExecutionEvents): Execution {
      did.push(`began ${run.run_id}`);
      let end = (_ending?: RunEnding): void => undefined;
      const ended = new Promise<RunEnding | undefined>((resolve) => (end = resolve));
      stops.set(run.run_id, stops.get(run.run_id) ?? []);
      let hasEnded = false;
      const graphEnded = (): void => {
        if (!hasEnded) events.onGraphEnded();
        hasEnded = true;
      };
      here.set(run.run_id, {
        creatorIsHere,
        graphEnded,
        release(ending) {
          graphEnded();
          events.onReleased(ending);
          end(ending);
        },
      });
      return {
        runId: run.run_id,
        threadId: run.thread_id,
        attempt: run.attempt,
        stop: (reason) => void stops.get(run.run_id)?.push(reason),
        wantValues: () => undefined,
        ended,
      };
    },
  } as Partial<Executor> as Executor;
  const { logger, lines } = listeningLogger();
  const worker = createWorker({
    queue,
    executor,
    signals: {
      send: ({ kind, runId }) => void did.push(`said ${kind} ${runId}`),
      subscribeToThread: () => () => undefined,
      subscribe(listener) {
        receive = listener;
        return () => (receive = undefined);
      },
      close: () => Promise.resolve(),
    },
    endings: {
      publish({ run }, here) {
        did.push(`settled ${run.run_id}`);
        if (here?.isAwaitedElsewhere ?? true) did.push(`said ended ${run.run_id}`);
      },
    },
    processId: "here",
    concurrency,
    leaseSeconds: 10,
    heartbeat: {
      begun: ({ runId }) => void did.push(`holds ${runId}`),
      ended: ({ runId }) => void did.push(`holds ${runId} no longer`),
      renew: () => void did.push("renewed"),
      close: () => Promise.resolve(),
    },
    onDeliveriesDue: () => void did.push("woke the outbox"),
    faults: { reached: (point) => void did.push(point) },
    logger,
  });
  const runOf = (runId: string): Here => {
    const found = here.get(runId);
    if (found === undefined) throw new Error(`${runId} is not executed here.`);
    return found;
  };
  return {
    worker,
    waiting,
    asked,
    did,
    stops,
    here,
    handingBack,
    runOf,
    signal: (kind: Signal["kind"], runId: string, threadId = "of any thread") =>
      receive?.({ kind, runId, threadId }),
    isListening: () => receive !== undefined,
    fail: (...errors: Error[]) => void (failures = errors),
    /** What the statement of the poll says, or that it fails. */
    pollFinds: (found: Partial<Waiting> | Error) =>
      void (waitingAtPolls = found instanceof Error ? found : { runs: false, deliveries: false, ...found }),
    holdUnknown: (runs: ClaimedRunRow[] | Error) => void (unknown = runs),
    /** Claims have no answer before the returned function is called. */
    holdClaims(): () => void {
      let release = (): void => undefined;
      held = new Promise((resolve) => (release = resolve));
      return release;
    },
    loud: (from = 50) =>
      lines
        .map((line) => JSON.parse(line) as { level: number; msg: string })
        .filter(({ level }) => level >= from)
        .map(({ msg }) => msg),
    async looks(count = 1): Promise<void> {
      await vi.advanceTimersByTimeAsync(count * POLL_MS);
    },
  };
};
export const opened = async (...runs: string[]) => {
  const one = aWorker();
  one.waiting.push(...runs.map((runId) => aRun(runId)));
  one.worker.open();
  await settled();
  return one;
};
