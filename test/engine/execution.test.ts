import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from "vitest";
import type { AttemptSaver, CheckpointStorage } from "../../src/state/checkpoints/types.ts";
import type { Database } from "../../src/platform/database/database.ts";
import type { ClaimedRunRow } from "../../src/platform/database/tables.ts";
import type { RunEnding } from "../../src/engine/attempt/conclusion.ts";
import { createExecutor, type Execution } from "../../src/engine/attempt/execution.ts";
import { createInlineExecutor } from "../../src/engine/executors/inline.ts";
import { createRunEnds, type RunEnds } from "../../src/engine/queue/ending.ts";
import type { Queue } from "../../src/engine/queue/queue.ts";
import type { Graphs } from "../../src/graphs/graphs.ts";
import { StateLostError } from "../../src/platform/domain/errors.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { createMetrics } from "../../src/platform/metrics/metrics.ts";
import { SEQ_PER_ATTEMPT } from "../../src/engine/events/event-ids.ts";
import { createEventLog, type EventLog, type RunEvent } from "../../src/engine/events/log.ts";
import type { Hub } from "../../src/engine/events/hub.ts";
import { RunChannel } from "../../src/engine/events/channel.ts";
import { listeningLogger } from "../helpers/parts.ts";
import { openQueue, type OpenQueue, type QueuedRun } from "./queue/open-queue.ts";

/** Ends and stops of runs, against the real queue, with a graph per test. */

let opened: OpenQueue;
beforeAll(async () => {
  opened = await openQueue();
});
afterAll(() => opened.close());
beforeEach(() => opened.database.query("delete from threadloom.runs"));
const executions: Execution[] = [];
afterEach(async () => {
  for (const execution of executions.splice(0)) {
    execution.stop({ kind: "lease-lost" });
    await execution.ended;
  }
});

const HERE = newId();
const ELSEWHERE = newId();
const KWARGS = { input: {}, stream_mode: ["values"], stream_subgraphs: false, durability: "async" };
const RESET = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

interface Situation {
  run?: QueuedRun & { threadless?: boolean; readerId?: string; resumable?: boolean };
  /** The graph's work after the test opens its gate; if left out, it continues until it is stopped. */
  graph?: () => unknown;
  queue?: Partial<Queue>;
  ends?: Partial<RunEnds>;
  checkpoints?: Partial<CheckpointStorage>;
  lastUnsafe?: AttemptSaver["lastUnsafe"];
  /** Statements of transactions that fail. */
  refuses?: RegExp;
  isLoss?: (error: unknown) => boolean;
  log?: (events: RunEvent[]) => Promise<void>;
  eventLog?: EventLog;
  runTimeoutSeconds?: number;
  creatorIsHere?: boolean;
}

const SUCCEEDS = () => ({ answer: 42 });
const failsWith = (error: Error) => (): never => {
  throw error;
};

const anExecutor = (situation: Situation) => {
  const did: string[] = [];
  const statements: string[] = [];
  const logged: RunEvent[] = [];
  const opening: { firstSeq?: number; keep?: boolean; logged?: boolean } = {};
  const { logger, lines } = listeningLogger();
  /** Applies to the next transaction. */
  let losesAnswer = false;
  const database: Database = {
    ...opened.database,
    isLoss: situation.isLoss ?? (() => false),
    async transaction(work) {
      const result = await opened.database.transaction((transaction) => {
        statements.length = 0;
        return work({
          ...transaction,
          query: (text, values) => {
            statements.push(text.replace(/\s+/g, " "));
            return situation.refuses?.test(text) === true
              ? Promise.reject(new Error("out of order"))
              : transaction.query(text, values);
          },
        });
      });
      if (!losesAnswer) return result;
      losesAnswer = false;
      throw RESET;
    },
  };
  const loseAnswer = (): void => void (losesAnswer = true);
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const stream = async function* (signal: AbortSignal): AsyncGenerator<unknown> {
    yield ["values", { step: 1 }];
    const stopped = new Promise<never>((_, reject) => {
      signal.throwIfAborted();
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
    await Promise.race([gate, stopped]);
    if (situation.graph === undefined) await stopped;
    else yield ["values", situation.graph()];
  };
  const graphs = {
    resolve: () =>
      Promise.resolve({
        stream: (_input: unknown, { signal }: { signal: AbortSignal }) => Promise.resolve(stream(signal)),
        getState: () => Promise.resolve({ next: [], tasks: [] }),
      }),
  } as unknown as Graphs;
  const checkpoints = {
    saver: {},
    placeOfRun: () => Promise.resolve("none"),
    saverForAttempt: () => ({
      failed: new AbortController().signal,
      endsWithWrites: false,
      lastUnsafe: situation.lastUnsafe,
      flush: () => Promise.resolve(),
    }),
    deleteRun: (_thread: string, runId: string) => Promise.resolve(void did.push(`deleted of ${runId}`)),
    deleteThread: (threadId: string) => Promise.resolve(void did.push(`deleted ${threadId}`)),
    ...situation.checkpoints,
  } as unknown as CheckpointStorage;
  const eventLog =
    situation.eventLog ??
    ({
      append: (_source: unknown, events: RunEvent[]) => Promise.resolve(void logged.push(...events)),
    } as unknown as EventLog);
  let channel: RunChannel | undefined;
  const hub = {
    open(options: ConstructorParameters<typeof RunChannel>[0] & { logged: boolean }) {
      Object.assign(opening, { firstSeq: options.firstSeq, keep: options.keep, logged: options.logged });
      channel = new RunChannel({
        ...options,
        ...(situation.log === undefined ? { keep: true } : { log: situation.log }),
      });
      return channel;
    },
    end: () => did.push("ended its stream"),
    abandon: () => did.push("cut its stream"),
    wantsProtocol: () => false,
  } as unknown as Hub;
  const executor = createExecutor({
    database,
    queue: { ...opened.queueOn(database), ...situation.queue },
    outbox: undefined,
    ends: { ...createRunEnds(database, checkpoints), ...situation.ends },
    graphs,
    checkpoints,
    graphExecutor: {
      aloneAtMost: 4,
      ...createInlineExecutor({
        graphs,
        checkpoints,
        interruptsOf: () => Promise.resolve({}),
        openSubgraphsOf: () => Promise.resolve([]),
        recursionLimitMax: 1_000,
        eventCharactersAtMost: 1_000_000,
      }),
    },
    hub,
    eventLog,
    processId: HERE,
    timeoutSecondsOf: () => situation.runTimeoutSeconds ?? 60,
    faults: { reached: (point) => void did.push(point) },
    metrics: createMetrics(),
    telemetry: undefined,
    traces: "off",
    costOf: () => undefined,
    store: () => Promise.resolve(),
    logger,
  });
  return { executor, did, statements, logged, opening, lines, open, loseAnswer, channel: () => channel };
};

/** Claims a run and executes it; the worker receives `ended`, too. */
const execute = async (situation: Situation) => {
  const parts = anExecutor(situation);
  const { threadless = false, readerId, resumable = false, ...asked } = situation.run ?? {};
  const { runId, threadId } = await opened.aRun({ ...asked, status: "pending", attempt: asked.attempt ?? 0 });
  await opened.database.query(
    "update threadloom.runs set kwargs = $2, delete_thread = $3, reader_id = $4, resumable = $5 where run_id = $1",
    [runId, JSON.stringify(KWARGS), threadless, readerId ?? null, resumable],
  );
  const run = (await opened.queue.claim(HERE, 60, 1))[0] as ClaimedRunRow;
  expect(run.run_id).toBe(runId);
  const releasedEndings: (RunEnding | undefined)[] = [];
  const execution = parts.executor.execute(run, situation.creatorIsHere ?? true, {
    onGraphEnded: () => undefined,
    onReleased: (ending) => void releasedEndings.push(ending),
  });
  executions.push(execution);
  const released = async (): Promise<RunEnding | undefined> => {
    const ending = await execution.ended;
    expect(releasedEndings).toEqual([ending]);
    return ending;
  };
  const row = async () => (await opened.rows()).get(runId);
  const thread = async () => (await opened.rows()).get(threadId);
  const loseIt = () =>
    opened.database.query("update threadloom.runs set attempt = attempt + 1 where run_id = $1", [runId]);
  const behind = async () => (await opened.aRun({ threadId, status: "pending", behind: true })).runId;
  const isBehind = async (id: string) => (await opened.rows()).get(id)?.["behind"];
  return { ...parts, execution, released, row, thread, loseIt, behind, isBehind, run, runId, threadId };
};

/** The statement takes effect, but its answer is lost. */
const losingAnswers = <Given extends unknown[], Answer>(
  work: (...given: Given) => Promise<Answer>,
  once = true,
): ((...given: Given) => Promise<Answer>) => {
  let lost = 0;
  return async (...given) => {
    const answer = await work(...given);
    lost += 1;
    if (lost === 1 || !once) throw RESET;
    return answer;
  };
};
const withLostFinish = (): Pick<Situation, "ends"> => ({
  ends: { finish: losingAnswers(createRunEnds(opened.database, NO_CHECKPOINTS).finish) },
});
const NO_CHECKPOINTS = { deleteRun: () => Promise.resolve(), deleteThread: () => Promise.resolve() };

describe("what a run has stored", () => {
  const asking = async (attempt: number, place: "newest" | "overtaken" | "none") => {
    const asked: string[] = [];
    const placeOfRun = (_thread: string, runId: string) => {
      asked.push(runId);
      return Promise.resolve(place);
    };
    const { open, released, row, runId } = await execute({
      run: { attempt: attempt - 1 },
      graph: SUCCEEDS,
      checkpoints: { placeOfRun },
    });
    open();
    await released();
    const { status, error } = (await row()) ?? {};
    return { asked: asked.map((id) => id === runId), status, error };
  };

  test("is not looked for in its first attempt", async () => {
    expect(await asking(1, "none")).toMatchObject({ asked: [], status: "success" });
  });

  test.each(["newest", "none"] as const)("is looked for once in a later attempt (%s)", async (place) => {
    expect(await asking(2, place)).toMatchObject({ asked: [true], status: "success" });
  });

  test("must be the newest state of its thread, or the run ends with an error", async () => {
    expect(await asking(2, "overtaken")).toMatchObject({
      asked: [true],
      status: "error",
      error: { error: "RunOvertakenError" },
    });
  });
});

describe("a run whose graph has finished", () => {
  test("is ended, its thread is free, and the next run may start", async () => {
    const startedAt = performance.now();
    const { open, released, row, thread, did, lines, behind, isBehind } = await execute({ graph: SUCCEEDS });
    const next = await behind();
    open();
    const ending = await released();
    expect(ending).toMatchObject({ status: "success", error: null, interrupts: undefined, othersWait: true });
    expect(ending?.values()).toBe('{"answer":42}');
    expect(await row()).toMatchObject({ status: "success", attempt: 1, lease_until: null });
    expect(await thread()).toMatchObject({ unfinished_runs: 1 });
    expect(await isBehind(next)).toBe(false);
    expect(did).toEqual(["before-first-event", "before-finish", "after-finish", "ended its stream"]);
    expect(ending?.execMs).toBeLessThanOrEqual(performance.now() - startedAt);
    expect(lines.join()).not.toContain("run ended");
  });

  test("and that is alone on its thread does not look for a next run", async () => {
    const asked: string[] = [];
    const { open, released } = await execute({
      graph: SUCCEEDS,
      queue: { advance: (threadId) => Promise.resolve(void asked.push(threadId)) },
    });
    open();
    expect(await released()).toMatchObject({ status: "success", othersWait: false });
    expect(asked).toEqual([]);
  });

  test("but which another attempt has taken is left to that attempt: no end is published, and the stream is cut off", async () => {
    const { open, released, row, did, loseIt, lines } = await execute({ graph: SUCCEEDS });
    await loseIt();
    open();
    expect(await released()).toBeUndefined();
    expect(await row()).toMatchObject({ status: "running", attempt: 2 });
    expect(did.at(-1)).toBe("cut its stream");
    expect(lines.join()).not.toContain("run ended");
  });

  test("ends on the checkpoint that it stored last, unless a crash of the database has removed it", async () => {
    const lastUnsafe = { checkpointNs: "", checkpointId: newId() };
    const { open, released, row, did } = await execute({ graph: SUCCEEDS, lastUnsafe });
    open();
    expect(await released()).toBeUndefined();
    expect(await row()).toMatchObject({ status: "running", attempt: 1 });
    expect(did.at(-1)).toBe("cut its stream");
  });

  test("has ended although the answer to that statement was lost", async () => {
    const { open, released, row, did } = await execute({ graph: SUCCEEDS, ...withLostFinish() });
    open();
    expect(await released()).toMatchObject({ status: "success", othersWait: true });
    expect(await row()).toMatchObject({ status: "success", attempt: 1 });
    expect(did.at(-1)).toBe("ended its stream");
  });

  test("has not ended if another attempt had it when the answer was lost", async () => {
    const { open, released, loseIt, row, did } = await execute({
      graph: SUCCEEDS,
      ...withLostFinish(),
    });
    await loseIt();
    open();
    expect(await released()).toBeUndefined();
    expect(await row()).toMatchObject({ status: "running", attempt: 2 });
    expect(did.at(-1)).toBe("cut its stream");
  });

  test("does not check whether it has ended if the first try was answered", async () => {
    const asked: string[] = [];
    const { open, released, loseIt } = await execute({
      graph: SUCCEEDS,
      queue: {
        endedAs: (_selector, status) => {
          asked.push(status);
          return Promise.resolve(true);
        },
      },
    });
    await loseIt();
    open();
    // Another attempt may have ended the run with the same status, so equal status does not prove this attempt's end.
    expect(await released()).toBeUndefined();
    expect(asked).toEqual([]);
  });

  test("has not ended if its row is gone, unless this process removed the row: the run was deleted meanwhile", async () => {
    const { open, released, runId } = await execute({ graph: SUCCEEDS, ...withLostFinish() });
    await opened.database.query("delete from threadloom.runs where run_id = $1", [runId]);
    open();
    expect(await released()).toBeUndefined();
  });

  test("retries its end until its lease is lost, and no longer", async () => {
    let tries = 0;
    const { open, execution, released, row } = await execute({
      graph: SUCCEEDS,
      ends: {
        finish() {
          tries += 1;
          if (tries === 3) execution.stop({ kind: "lease-lost" });
          return Promise.reject(RESET);
        },
      },
    });
    open();
    expect(await released()).toBeUndefined();
    expect(tries).toBe(3);
    expect(await row()).toMatchObject({ status: "running" });
  });
});

test("a run's time limit no longer applies once its graph has finished", async () => {
  const counted = vi.spyOn(globalThis, "setTimeout");
  const stopped = vi.spyOn(globalThis, "clearTimeout");
  onTestFinished(() => void vi.restoreAllMocks());
  const { open, released } = await execute({ graph: SUCCEEDS, runTimeoutSeconds: 4_321 });
  open();
  await released();
  const at = counted.mock.calls.findIndex(([, ms]) => ms === 4_321_000);
  expect(stopped).toHaveBeenCalledWith(counted.mock.results[at]?.value);
});

describe("a run whose graph failed", () => {
  test("ends as error, and its readers receive the error before the end", async () => {
    const { open, released, row, lines, channel } = await execute({
      graph: failsWith(new Error("no answer")),
    });
    open();
    expect(await released()).toMatchObject({
      status: "error",
      error: { error: "Error", message: "no answer" },
    });
    expect(await row()).toMatchObject({ status: "error" });
    expect(channel()?.lastSeq).toBe(2);
    expect(lines.join()).toContain("the graph failed");
  });

  test.each([
    ["the database was away", RESET],
    ["what it needs was lost", new StateLostError("gone")],
  ])("because %s goes back to the queue, and ends in its tenth attempt", async (_why, error) => {
    const isLoss = (thrown: unknown): boolean => thrown === RESET;
    const ninth = await execute({ run: { attempt: 8 }, graph: failsWith(error), isLoss });
    ninth.open();
    expect(await ninth.released()).toBeUndefined();
    expect(await ninth.row()).toMatchObject({
      status: "pending",
      attempt: 9,
      worker_id: null,
      lost_attempts: 0,
    });
    expect(ninth.did.at(-1)).toBe("cut its stream");
    await opened.database.query("delete from threadloom.runs");
    const tenth = await execute({ run: { attempt: 9 }, graph: failsWith(error), isLoss });
    tenth.open();
    expect(await tenth.released()).toMatchObject({ status: "error" });
    expect(await tenth.row()).toMatchObject({ status: "error", attempt: 10 });
  });

  test("counts as finished if its graph finished while the database was away", async () => {
    const { open, released, row } = await execute({ graph: SUCCEEDS, isLoss: () => true });
    open();
    expect(await released()).toMatchObject({ status: "success" });
    expect(await row()).toMatchObject({ status: "success" });
  });
});

describe("a run whose end", () => {
  const CANCELLED = Object.assign(new Error("canceling statement due to statement timeout"), {
    code: "57014",
  });

  test("is cancelled by a time-out of the database is ended by a retry", async () => {
    const { finish } = createRunEnds(opened.database, NO_CHECKPOINTS);
    let tries = 0;
    const { open, released, row } = await execute({
      graph: SUCCEEDS,
      ends: {
        finish: (...given) => {
          tries += 1;
          return tries <= 2 ? Promise.reject(CANCELLED) : finish(...given);
        },
      },
    });
    open();
    expect(await released()).toMatchObject({ status: "success" });
    expect(await row()).toMatchObject({ status: "success", attempt: 1 });
    expect(tries).toBe(3);
  });

  test("is cancelled each time for a minute is left to another attempt, because every run must end", async () => {
    let tries = 0;
    const past = vi.spyOn(performance, "now");
    onTestFinished(() => past.mockRestore());
    const { open, released, row } = await execute({
      graph: SUCCEEDS,
      ends: {
        finish: () => {
          tries += 1;
          if (tries === 2) past.mockReturnValue(performance.now() + 61_000);
          return Promise.reject(CANCELLED);
        },
      },
    });
    open();
    expect(await released()).toBeUndefined();
    expect(tries).toBe(2);
    expect(await row()).toMatchObject({ status: "running", attempt: 1 });
  });

  test("can't be stored gives up its lease: the attempt is lost, and the queue need not wait for the lease", async () => {
    const { open, released, row, lines } = await execute({
      graph: SUCCEEDS,
      ends: { finish: () => Promise.reject(new Error("out of order")) },
    });
    open();
    expect(await released()).toBeUndefined();
    const after = await row();
    expect(after).toMatchObject({ status: "running", attempt: 1 });
    expect(Date.parse(String(after?.["lease_until"]))).toBeLessThanOrEqual(Date.now() + 1_000);
    expect(lines.join()).toContain("the outcome of a run could not be stored");
  });
});

describe("a run that is stopped", () => {
  test("because its lease was lost is neither ended nor handed back", async () => {
    const { execution, released, row, did } = await execute({});
    const before = await row();
    execution.stop({ kind: "lease-lost" });
    expect(await released()).toBeUndefined();
    expect(await row()).toEqual(before);
    expect(did).toEqual(["before-first-event", "cut its stream"]);
  });

  test("because its process fails gives up its lease, and counts as a lost attempt", async () => {
    const { execution, released, row, did } = await execute({});
    execution.stop({ kind: "process-failed" });
    expect(await released()).toBeUndefined();
    const after = await row();
    expect(after).toMatchObject({ status: "running", attempt: 1 });
    expect(Date.parse(String(after?.["lease_until"]))).toBeLessThanOrEqual(Date.now() + 1_000);
    expect(did).toEqual(["before-first-event", "cut its stream"]);
  });

  test("because its process fails gives up its lease before the process exits", async () => {
    let giveUp = (): void => undefined;
    const given = new Promise<void>((resolve) => (giveUp = resolve));
    const { execution, did, released } = await execute({ queue: { giveUpLease: () => given } });
    execution.stop({ kind: "process-failed" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(did).toEqual(["before-first-event"]);
    giveUp();
    expect(await released()).toBeUndefined();
  });

  test("because its process stops goes back to the queue", async () => {
    const { execution, released, row, did } = await execute({});
    execution.stop({ kind: "shutdown" });
    expect(await released()).toBeUndefined();
    expect(await row()).toMatchObject({ status: "pending", attempt: 1, worker_id: null });
    expect(did).toEqual(["before-first-event", "cut its stream"]);
  });

  test("because its process stops is ended if a cancel was pending", async () => {
    const { execution, released, row, runId } = await execute({});
    await opened.database.query("update threadloom.runs set cancel_action = 'interrupt' where run_id = $1", [
      runId,
    ]);
    execution.stop({ kind: "shutdown" });
    expect(await released()).toMatchObject({ status: "interrupted" });
    expect(await row()).toMatchObject({ status: "interrupted" });
  });

  test("because it was cancelled before its start is ended at once", async () => {
    const { released, row } = await execute({ run: { cancel: "interrupt" } });
    expect(await released()).toMatchObject({ status: "interrupted", error: null });
    expect(await row()).toMatchObject({ status: "interrupted" });
  });

  test("because it takes too long ends as timeout", async () => {
    const { released, row } = await execute({ runTimeoutSeconds: 0.01 });
    expect(await released()).toMatchObject({ status: "timeout", error: { error: "RunTimeoutError" } });
    expect(await row()).toMatchObject({ status: "timeout" });
  });
});

describe("a run that is rolled back", () => {
  const ROLLBACK = { kind: "cancel", action: "rollback" } as const;
  /** All code takes locks in this order. */
  const THREAD_FIRST = [
    expect.stringMatching(
      /select 1 from threadloom.threads where thread_id = \$1::uuid for (no key )?update/,
    ),
    expect.stringMatching(
      /from threadloom.runs where thread_id = \$1::uuid and run_id = \$2::uuid and attempt = \$3::\w+ .* for update/,
    ),
  ] as unknown[];

  test("leaves no data, and the next run may start", async () => {
    const { execution, released, row, thread, did, statements, behind, isBehind, runId } = await execute({});
    const next = await behind();
    execution.stop(ROLLBACK);
    expect(await released()).toMatchObject({ status: "rolled-back", error: null, othersWait: true });
    expect(await row()).toBeUndefined();
    expect(await thread()).toMatchObject({ unfinished_runs: 1 });
    expect(await isBehind(next)).toBe(false);
    expect(did).toEqual(["before-first-event", `deleted of ${runId}`, "ended its stream"]);
    expect(statements.slice(0, 2)).toEqual(THREAD_FIRST);
  });

  test("while another attempt has it is left to that attempt with all its data", async () => {
    const { execution, released, row, did, loseIt } = await execute({});
    await loseIt();
    execution.stop(ROLLBACK);
    expect(await released()).toBeUndefined();
    expect(await row()).toMatchObject({ status: "running", attempt: 2 });
    expect(did).toEqual(["before-first-event", "cut its stream"]);
  });

  const OUT_OF_ORDER = () => Promise.reject(new Error("out of order"));

  test.each<[string, Situation]>([
    ["whose checkpoints can't be removed", { checkpoints: { deleteRun: OUT_OF_ORDER } }],
    ["whose thread can't be locked", { refuses: /select 1 from threadloom.threads/ }],
    [
      "whose own thread can't be locked",
      { run: { threadless: true }, refuses: /select 1 from threadloom.threads/ },
    ],
    [
      "whose own thread can't be removed",
      { run: { threadless: true }, refuses: /delete from threadloom.threads/ },
    ],
    ["that can't be removed", { refuses: /delete from threadloom.runs/ }],
    [
      "whose thread's checkpoints can't be removed",
      { run: { threadless: true }, checkpoints: { deleteThread: OUT_OF_ORDER } },
    ],
  ])("%s stays whole, and belongs to its attempt", async (_which, situation) => {
    const { execution, released, row, thread, did, lines } = await execute(situation);
    execution.stop(ROLLBACK);
    expect(await released()).toBeUndefined();
    expect(await row()).toMatchObject({ status: "running", attempt: 1 });
    expect(await thread()).toMatchObject({ unfinished_runs: 1 });
    expect(did.at(-1)).toBe("cut its stream");
    expect(lines.join()).toContain("the outcome of a run could not be stored");
  });

  test("and has a thread of its own removes that thread", async () => {
    const { execution, released, row, thread, did, statements, threadId } = await execute({
      run: { threadless: true, readerId: ELSEWHERE },
    });
    execution.stop(ROLLBACK);
    expect(await released()).toMatchObject({ status: "rolled-back" });
    expect(await thread()).toBeUndefined();
    expect(await row()).toBeUndefined();
    expect(did).toEqual(["before-first-event", `deleted ${threadId}`, "ended its stream"]);
    expect(statements.slice(0, 2)).toEqual(THREAD_FIRST);
  });

  test("and has a thread of its own leaves it to another attempt that has the run", async () => {
    const { execution, released, thread, did, loseIt } = await execute({ run: { threadless: true } });
    await loseIt();
    execution.stop(ROLLBACK);
    expect(await released()).toBeUndefined();
    expect(await thread()).toBeDefined();
    expect(did).toEqual(["before-first-event", "cut its stream"]);
  });
});

describe("a run with a thread of its own", () => {
  test.each([
    ["nobody", undefined],
    ["a client of this process", HERE],
  ])("that %s reads is removed at its end", async (_who, readerId) => {
    const { open, released, row, thread, did, threadId } = await execute({
      run: { threadless: true, ...(readerId === undefined ? {} : { readerId }) },
      graph: SUCCEEDS,
    });
    open();
    expect(await released()).toMatchObject({ status: "success", othersWait: false });
    expect([await row(), await thread()]).toEqual([undefined, undefined]);
    expect(did).toContain(`deleted ${threadId}`);
  });

  test.each([
    ["that a client of another process reads", { readerId: ELSEWHERE }, true],
    ["that came through the queue", {}, false],
  ])("%s is stored as ended", async (_which, run, creatorIsHere) => {
    const { open, released, row, did } = await execute({
      run: { threadless: true, ...run },
      graph: SUCCEEDS,
      creatorIsHere,
    });
    open();
    expect(await released()).toMatchObject({ status: "success" });
    expect(await row()).toMatchObject({ status: "success" });
    expect(did.join()).not.toContain("deleted");
  });

  test("has ended although the answer to its removal was lost", async () => {
    const { open, released, thread, loseAnswer } = await execute({
      run: { threadless: true },
      graph: SUCCEEDS,
    });
    loseAnswer();
    open();
    expect(await released()).toMatchObject({ status: "success" });
    expect(await thread()).toBeUndefined();
  });

  test("keeps its thread if another attempt has it", async () => {
    const { open, released, thread, did, loseIt } = await execute({
      run: { threadless: true },
      graph: SUCCEEDS,
    });
    await loseIt();
    open();
    expect(await released()).toBeUndefined();
    expect(await thread()).toBeDefined();
    expect(did.join()).not.toContain("deleted");
  });
});

describe("the events of a run", () => {
  test("of a later attempt have ids above those of the previous one, and are kept for a reader of this process", async () => {
    const here = await execute({ run: { attempt: 2, readerId: HERE } });
    expect(here.opening).toEqual({ firstSeq: 2 * SEQ_PER_ATTEMPT, keep: true, logged: false });
    expect(here.channel()?.opening).toMatchObject({
      event: "metadata",
      data: JSON.stringify({ run_id: here.runId, attempt: 3 }),
    });
    await opened.database.query("delete from threadloom.runs");
    const elsewhere = await execute({ run: { readerId: ELSEWHERE } });
    expect(elsewhere.opening).toEqual({ firstSeq: 0, keep: false, logged: true });
    await opened.database.query("delete from threadloom.runs");
    expect((await execute({})).opening).toEqual({ firstSeq: 0, keep: false, logged: false });
  });

  test.each([
    ["resumable", true, "error"],
    ["not resumable", false, "success"],
  ])(
    "that the log refuses for good: a run that is %s ends nevertheless",
    async (_which, resumable, status) => {
      const log = () => Promise.reject(new Error("too large"));
      const { open, released } = await execute({ run: { resumable }, graph: SUCCEEDS, log });
      open();
      expect(await released()).toMatchObject({ status });
    },
  );

  test("are in the log before the run ends", async () => {
    let write = (): void => undefined;
    const written = new Promise<void>((resolve) => (write = resolve));
    const { open, released, did } = await execute({
      run: { resumable: true },
      graph: SUCCEEDS,
      log: () => written,
    });
    open();
    const stepsSoFar = await new Promise<string[]>((resolve) => setImmediate(() => resolve([...did])));
    expect(stepsSoFar).not.toContain("before-finish");
    write();
    expect(await released()).toMatchObject({ status: "success" });
  });

  test("that the log temporarily refuses leave the run to its next attempt", async () => {
    const { open, released, row, lines } = await execute({
      run: { resumable: true },
      graph: SUCCEEDS,
      log: () => Promise.reject(RESET),
    });
    open();
    expect(await released()).toBeUndefined();
    expect(await row()).toMatchObject({ status: "running", attempt: 1 });
    expect(lines.join()).toContain("the outcome of a run could not be stored");
  });
});

describe("a run that has lost its last worker", () => {
  const FAILED = { kind: "failed", error: new Error("given up") } as const;
  const conclude = async (run: Situation["run"]) => {
    const { executor, logged, lines } = anExecutor({});
    const started = await execute({ run: run ?? {} });
    started.execution.stop({ kind: "lease-lost" });
    await started.released();
    return { ...started, logged, lines, ending: await executor.concludeAbandoned(started.run, FAILED) };
  };

  test("is ended with one line in the log", async () => {
    const { ending, row, logged } = await conclude({});
    expect(ending).toMatchObject({ status: "error", error: { message: "given up" } });
    expect(await row()).toMatchObject({ status: "error" });
    expect(logged).toEqual([]);
    expect(ending?.execMs).toBeUndefined();
  });

  test.each([
    ["resumable", { resumable: true }],
    ["read by a client of some process", { readerId: ELSEWHERE }],
  ])("and is %s tells its readers why", async (_which, run) => {
    const { logged } = await conclude(run);
    expect(logged).toMatchObject([{ seq: SEQ_PER_ATTEMPT, event: "error" }]);
  });

  test("ends with its own error if an earlier sweep logged that and then lost the database", async () => {
    const { execution, released, run, row } = await execute({ run: { resumable: true } });
    execution.stop({ kind: "lease-lost" });
    await released();
    const eventLog = createEventLog(opened.database);
    const first = anExecutor({ eventLog, ends: { finish: () => Promise.reject(RESET) } });
    await expect(first.executor.concludeAbandoned(run, FAILED)).rejects.toThrow(RESET);
    const second = anExecutor({ eventLog });
    expect(await second.executor.concludeAbandoned(run, FAILED)).toMatchObject({
      status: "error",
      error: { message: "given up" },
    });
    expect(await row()).toMatchObject({ status: "error" });
    expect(second.lines.join()).not.toContain("could not be stored");
  });

  test("is left alone if another attempt has it", async () => {
    const { executor, lines } = anExecutor({});
    const { execution, released, run, row, loseIt } = await execute({});
    execution.stop({ kind: "lease-lost" });
    await released();
    await loseIt();
    expect(await executor.concludeAbandoned(run, FAILED)).toBeUndefined();
    expect(await row()).toMatchObject({ status: "running", attempt: 2 });
    expect(lines.join()).not.toContain("run ended");
  });
});
