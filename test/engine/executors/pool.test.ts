import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ClaimedRunRow } from "../../../src/platform/database/tables.ts";
import type {
  GraphProcess,
  GraphProcessOptions,
} from "../../../src/engine/executors/process/graph-process.ts";
import type { AttemptResult, WatchedSink } from "../../../src/engine/executors/executor.ts";
import type { ToGraphProcess } from "../../../src/engine/executors/process/messages.ts";
import { GraphProcesses } from "../../../src/engine/executors/process/pool.ts";
import { createLogger } from "../../../src/platform/lib/logger.ts";
import { NO_RECORDS } from "../no-records.ts";

/** The pool with simulated processes: a real one takes a second to start, and does not fail on request. */

const started = vi.hoisted(() => [] as FakeProcess[]);
interface FakeProcess extends GraphProcess {
  isResponsive: boolean;
  options: GraphProcessOptions;
  received: ToGraphProcess[];
  isClosed: boolean;
}
vi.mock(import("../../../src/engine/executors/process/graph-process.ts"), () => ({
  startGraphProcess(options) {
    const fake: FakeProcess = {
      options,
      received: [],
      isClosed: false,
      id: started.length + 1,
      isResponsive: true,
      send: (message) => void fake.received.push(message),
      kill: (reason, how) => options.onEnd(reason, how),
      close() {
        fake.isClosed = true;
        return Promise.resolve();
      },
    };
    started.push(fake);
    return fake;
  },
}));

const LONG_MS = 60_000;
const SINK: WatchedSink = {
  emit: () => undefined,
  needsPause: false,
  pause: () => Promise.resolve(),
  wanted: false,
  onWanted: () => undefined,
  hasLog: false,
  logged: () => undefined,
};

const lines: string[] = [];
const aPool = (options: { processes?: number; spares?: number; runsAtMost?: number } = {}) =>
  new GraphProcesses({
    processes: 1,
    spares: 1,
    entry: new URL("file:///graphs.js"),
    setup: {} as GraphProcessOptions["setup"],
    heapMegabytes: 100,
    blockedSeconds: 10,
    runsAtMost: 1_000,
    residentBytesAtMost: 1e9,
    residentBytesKilled: 1.5e9,
    logger: createLogger({
      level: "info",
      destination: { write: (line: string) => void lines.push(line) },
    }),
    ...options,
  });

const begin = (pool: ReturnType<typeof aPool>, runId: string, isAlone = false) => {
  const run = { run_id: runId, delete_thread: false } as ClaimedRunRow;
  const execution = pool.execute(run, SINK, {
    isAlone,
    publishesProtocol: false,
    records: NO_RECORDS,
    onGraphEnded: () => undefined,
  });
  const state: { result?: AttemptResult } = {};
  void execution.result.then((result) => (state.result = result));
  return { execution, state };
};
const ready = (fake: FakeProcess): void => fake.options.onMessage({ kind: "ready" });
/** The number that the pool gave a run. */
const idOf = ({ received }: FakeProcess, runId: string): number =>
  received.find((message) => message.kind === "execute" && message.run.run_id === runId)?.["id" as never] ??
  expect.fail(`${runId} was not begun here`);

beforeEach(() => {
  vi.useFakeTimers();
  started.length = 0;
  lines.length = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

describe("a run that was asked to stop", () => {
  test("does not cost its process if its graph has ended and its progress waits for the database", async () => {
    const pool = aPool();
    const [fake] = started as [FakeProcess];
    ready(fake);
    const before = begin(pool, "before");
    const after = begin(pool, "after");
    const neighbour = begin(pool, "neighbour");
    before.execution.stop({ kind: "timeout" });
    fake.options.onMessage({ kind: "graph-ended", id: idOf(fake, "before") });
    fake.options.onMessage({ kind: "graph-ended", id: idOf(fake, "after") });
    after.execution.stop({ kind: "timeout" });
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(pool.figures().deaths.unstopped).toBe(0);
    expect(neighbour.state.result).toBeUndefined();
  });

  test("costs its process, but its neighbours no attempt, if its graph continues", async () => {
    const pool = aPool();
    const [fake] = started as [FakeProcess];
    ready(fake);
    const bad = begin(pool, "bad");
    const neighbour = begin(pool, "neighbour");
    bad.execution.stop({ kind: "timeout" });
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(pool.figures().deaths.unstopped).toBe(1);
    expect(bad.state.result).toEqual({ kind: "stopped", reason: { kind: "timeout" } });
    expect(neighbour.state.result).toEqual({ kind: "stopped", reason: { kind: "shutdown" } });
  });

  test("has no more time than the server has to stop, even if its graph has ended", async () => {
    const pool = aPool();
    const [fake] = started as [FakeProcess];
    ready(fake);
    const { execution, state } = begin(pool, "run");
    execution.stop({ kind: "shutdown" });
    fake.options.onMessage({ kind: "graph-ended", id: idOf(fake, "run") });
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(state.result).toEqual({ kind: "stopped", reason: { kind: "shutdown" } });
  });
});

test("when a process dies by itself, each of its runs loses an attempt", async () => {
  const pool = aPool();
  const [fake] = started as [FakeProcess];
  ready(fake);
  const runs = ["one", "two"].map((runId) => begin(pool, runId));
  fake.options.onEnd("exit", "exited with 1");
  await vi.advanceTimersByTimeAsync(0);
  for (const { state } of runs) expect(state.result).toEqual({ kind: "lost", how: "exited with 1" });
});

describe("a failing start", () => {
  test("keeps a worn process in service only until the next one is ready", async () => {
    const pool = aPool({ runsAtMost: 1 });
    const [worn] = started as [FakeProcess];
    ready(worn);
    const spare = started[1]!;
    begin(pool, "run");
    worn.options.onMessage({
      kind: "result",
      id: idOf(worn, "run"),
      result: { kind: "stopped", reason: { kind: "timeout" } },
    });
    spare.options.onEnd("start", "could not be started", new Error("EMFILE"));
    expect(worn.isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(LONG_MS);
    ready(started[2]!);
    expect(worn.isClosed).toBe(true);
  });

  test("is logged once with its cause, however often it is retried", async () => {
    aPool();
    const linesWith = (text: string) => lines.filter((line) => line.includes(text));
    for (let tries = 0; tries < 5; tries += 1) {
      started.at(-1)!.options.onEnd("start", "could not be started", new Error("spawn EMFILE"));
      const before = started.length;
      while (started.length === before) await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(linesWith("could not be started")).toHaveLength(1);
    expect(lines.join()).toContain("spawn EMFILE");
    ready(started.at(-1)!);
    expect(linesWith("graph processes start again")).toHaveLength(1);
    started.at(-1)!.options.onEnd("exit", "exited with 1");
    expect(linesWith("exited with 1")).toHaveLength(1); // the end of a process that was ready is always logged
  });

  test("of a process for a single run delays no other start", async () => {
    const pool = aPool();
    ready(started[0]!);
    // The run takes the spare, and the next spare starts when no other start is in progress.
    begin(pool, "only", true);
    expect(started).toHaveLength(2);
    started[1]!.options.onEnd("exit", "exited with 1");
    expect(started).toHaveLength(3);
    await pool.close();
  });
});

describe("in development, when no process can load the graphs,", () => {
  const BROKEN = {
    kind: "failed",
    message: "Graph 'agent' can't be loaded: 1 error:\na.ts:3:7: ERROR: Unexpected ;.\n  > 3 | = ;",
  } as const;
  const SENTENCE = "Graph 'agent' can't be loaded: 1 error: a.ts:3:7: ERROR: Unexpected ;.";
  const REFUSED = { kind: "failed", error: { message: SENTENCE } };
  const aBrokenPool = () => {
    const pool = aPool({ spares: 0 });
    ready(started[0]!);
    started[0]!.options.onEnd("exit", "exited with 1");
    return pool;
  };
  const nextStart = async (count: number): Promise<FakeProcess> => {
    while (started.length < count) await vi.advanceTimersByTimeAsync(1_000);
    return started[count - 1]!;
  };

  test("a run ends with an error that says why, and so does a later one", async () => {
    const pool = aBrokenPool();
    const first = begin(pool, "first");
    (await nextStart(2)).options.onMessage(BROKEN);
    await vi.advanceTimersByTimeAsync(0);
    expect(first.state.result).toMatchObject(REFUSED);
    const later = begin(pool, "later");
    (await nextStart(3)).options.onMessage(BROKEN);
    await vi.advanceTimersByTimeAsync(0);
    expect(later.state.result).toMatchObject(REFUSED);
    const mended = begin(pool, "mended");
    ready(await nextStart(4));
    expect([placesOf("mended"), placesOf("first"), mended.state.result]).toEqual([[4], [], undefined]);
    await pool.close();
  });

  test("a run that was to continue alone ends with that error, too, and is not started again", async () => {
    const pool = aBrokenPool();
    const { state } = begin(pool, "only", true);
    const alone = started.at(-1)!;
    alone.options.onMessage(BROKEN);
    await vi.advanceTimersByTimeAsync(0);
    expect(state.result).toMatchObject(REFUSED);
    await pool.close();
  });

  test("a run waits while another process loads the corrected code", async () => {
    const pool = aBrokenPool();
    const { state } = begin(pool, "run");
    const broken = await nextStart(2);
    const renewed = pool.renew();
    const successor = await nextStart(3);
    broken.options.onMessage(BROKEN);
    await vi.advanceTimersByTimeAsync(0);
    expect(state.result).toBeUndefined();
    ready(successor);
    await renewed;
    expect(placesOf("run")).toEqual([3]);
    await pool.close();
  });
});

/** The processes on which a run was started, in order. */
const placesOf = (runId: string): unknown[] =>
  started
    .filter(({ received }) =>
      received.some((message) => message.kind === "execute" && message.run.run_id === runId),
    )
    .map(({ id }) => id);

describe("with a spare that is ready", () => {
  const aReadyPool = () => {
    const pool = aPool();
    ready(started[0]!);
    ready(started[1]!);
    return pool;
  };

  test("the runs of a dead process start there at once, and a new spare is started", async () => {
    const pool = aReadyPool();
    begin(pool, "first");
    started[0]!.options.onEnd("signal", "was ended by SIGKILL");
    begin(pool, "next");
    expect(placesOf("next")).toEqual([2]);
    expect(started).toHaveLength(3);
    ready(started[2]!);
    expect(pool.figures()).toMatchObject({ working: 1, spare: 1, starting: 0, deaths: { signal: 1 } });
  });

  test("a process that does not answer gets no new run", () => {
    const pool = aPool({ processes: 2 });
    const [silent, answering] = started as [FakeProcess, FakeProcess];
    ready(silent);
    ready(answering);
    silent.isResponsive = false;
    for (const name of ["one", "two"]) begin(pool, name);
    expect([placesOf("one"), placesOf("two")]).toEqual([[2], [2]]);
  });

  test("a worn process gives its place to the new one, and ends with its last run", async () => {
    const pool = aReadyPool();
    begin(pool, "old");
    started[0]!.options.onMessage({ kind: "pong", residentBytes: 1.4e9 });
    begin(pool, "new");
    expect(placesOf("new")).toEqual([2]);
    expect(started[0]!.isClosed).toBe(false);
    const result = { kind: "stopped", reason: { kind: "timeout" } } as const;
    started[0]!.options.onMessage({ kind: "result", id: idOf(started[0]!, "old"), result });
    expect(started[0]!.isClosed).toBe(true);
  });
});

test("processes that end before they are ready are started again after growing pauses", async () => {
  aPool();
  for (let times = 1; times <= 3; times += 1) {
    started.at(-1)!.options.onEnd("exit", "exited with 1");
    expect(started).toHaveLength(times);
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(started).toHaveLength(times + 1);
  }
});

test("a process that uses more memory than a worn one may is killed, and the log names its runs", async () => {
  const pool = aPool();
  const [fake] = started as [FakeProcess];
  ready(fake);
  const { state } = begin(pool, "greedy");
  fake.options.onMessage({ kind: "pong", residentBytes: 1.4e9 });
  expect(pool.figures().deaths.memory).toBe(0);
  fake.options.onMessage({ kind: "pong", residentBytes: 1.6e9 });
  await vi.advanceTimersByTimeAsync(0);
  expect(pool.figures().deaths.memory).toBe(1);
  expect(state.result).toEqual({ kind: "lost", how: "was killed: it took 1600 MB" });
  const line = lines.find((text) => text.includes("it took 1600 MB"));
  expect(JSON.parse(line ?? "{}")).toMatchObject({ runs: ["greedy"] });
});

describe("while no process is ready", () => {
  test("the pool starts as many as its size at once, and runs wait for the first", () => {
    const pool = aPool({ processes: 2 });
    expect(started).toHaveLength(2);
    begin(pool, "run");
    expect(placesOf("run")).toEqual([]);
    ready(started[1]!);
    expect(placesOf("run")).toEqual([2]);
  });

  test("a run that is asked to stop is over, and no process begins it", async () => {
    const pool = aPool();
    const { execution, state } = begin(pool, "run");
    execution.stop({ kind: "timeout" });
    await vi.advanceTimersByTimeAsync(0);
    expect(state.result).toEqual({ kind: "stopped", reason: { kind: "timeout" } });
    ready(started[0]!);
    expect(placesOf("run")).toEqual([]);
  });
});

describe("a run that is alone", () => {
  test("takes the ready spare at once", () => {
    const pool = aPool({ spares: 2 });
    for (let index = 0; index < 3; index += 1) ready(started[index]!);
    started[1]!.options.onEnd("exit", "exited with 1");
    begin(pool, "only", true);
    expect(placesOf("only")).toEqual([3]);
  });

  test("shares its process with none, and ends it", async () => {
    const pool = aPool({ processes: 0, spares: 0 });
    await pool.loaded;
    expect(started).toHaveLength(0);
    const runs = ["1", "2", "3"].map((runId) => begin(pool, runId, true));
    for (const fake of started) ready(fake);
    expect(["1", "2", "3"].map(placesOf)).toEqual([[1], [2], [3]]);
    const [first, second] = started as [FakeProcess, FakeProcess];
    const result = { kind: "stopped", reason: { kind: "timeout" } } as const;
    first.options.onMessage({ kind: "result", id: idOf(first, "1"), result });
    expect(first.isClosed).toBe(true);
    second.options.onEnd("exit", "exited with 1");
    await vi.advanceTimersByTimeAsync(0);
    expect(runs.map(({ state }) => state.result)).toEqual([
      result,
      { kind: "lost", how: "exited with 1" },
      undefined,
    ]);
    expect([started.length, pool.aloneAtMost]).toEqual([3, 4]);
  });

  test("is handed back if its process does not start, and no other is taken for half a minute", async () => {
    const pool = aPool();
    ready(started[0]!);
    const { state } = begin(pool, "only", true);
    started[1]!.options.onEnd("exit", "exited with 1");
    await vi.advanceTimersByTimeAsync(29_000);
    expect(state.result).toEqual({ kind: "stopped", reason: { kind: "shutdown" } });
    expect(pool.aloneAtMost).toBe(0);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(pool.aloneAtMost).toBe(4);
    for (const fake of started.slice(2)) ready(fake);
    expect(placesOf("only")).toEqual([]);
  });

  test("begins nowhere if it was asked to stop before its process was ready", async () => {
    const pool = aPool();
    ready(started[0]!);
    const { execution, state } = begin(pool, "only", true);
    execution.stop({ kind: "timeout" });
    ready(started[1]!);
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(state.result).toEqual({ kind: "stopped", reason: { kind: "timeout" } });
    expect([placesOf("only"), started[1]!.isClosed]).toEqual([[], true]);
  });
});

test("a run that ends after it was asked to stop costs its process nothing", async () => {
  const pool = aPool();
  const [fake] = started as [FakeProcess];
  ready(fake);
  const { execution, state } = begin(pool, "run");
  execution.stop({ kind: "timeout" });
  const result = { kind: "stopped", reason: { kind: "timeout" } } as const;
  fake.options.onMessage({ kind: "result", id: idOf(fake, "run"), result });
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(pool.figures()).toMatchObject({ working: 1, deaths: { unstopped: 0 } });
  expect(state.result).toEqual(result);
});

test("a closed pool begins no run and starts no process", async () => {
  const pool = aPool();
  ready(started[0]!);
  await pool.close();
  expect(started.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  const { state } = begin(pool, "late");
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(state.result).toEqual({ kind: "lost", how: "was not started" });
  expect([placesOf("late"), started.length]).toEqual([[], 2]);
});

test("new code of graphs starts no process without regular processes", async () => {
  await aPool({ processes: 0, spares: 0 }).renew();
  expect(started).toHaveLength(0);
});

describe("new code of graphs", () => {
  const aReloadingPool = () => {
    const pool = aPool({ spares: 0 });
    const [first] = started as [FakeProcess];
    ready(first);
    return { pool, first };
  };

  test("is loaded by a new process; new runs begin there, and running ones end where they are", async () => {
    const { pool, first } = aReloadingPool();
    const before = begin(pool, "before");
    const renewed = pool.renew();
    const successor = started.at(-1)!;
    begin(pool, "meanwhile");
    expect(idOf(first, "meanwhile")).toBeDefined();
    ready(successor);
    await renewed;
    begin(pool, "after");
    expect(idOf(successor, "after")).toBeDefined();
    expect(first.isClosed).toBe(false);
    for (const name of ["before", "meanwhile"]) {
      const result = { kind: "stopped", reason: { kind: "timeout" } } as const;
      first.options.onMessage({ kind: "result", id: idOf(first, name), result });
    }
    await vi.advanceTimersByTimeAsync(1);
    expect(before.state.result).toBeDefined();
    expect(first.isClosed).toBe(true);
  });

  test("that can't be loaded, or ends its process, leaves the old code in service", async () => {
    const { pool, first } = aReloadingPool();
    const failing = expect(pool.renew()).rejects.toThrow("a comma is missing");
    started.at(-1)!.options.onMessage({ kind: "failed", message: "a comma is missing" });
    await failing;
    expect(started.at(-1)!.isClosed).toBe(true);
    const exiting = expect(pool.renew()).rejects.toThrow("exited with 3");
    started.at(-1)!.options.onEnd("exit", "exited with 3");
    await exiting;
    begin(pool, "run");
    expect(idOf(first, "run")).toBeDefined();
  });

  test("of a later change replaces code that is being loaded", async () => {
    const { pool } = aReloadingPool();
    const first = expect(pool.renew()).rejects.toThrow("once more");
    const replaced = started.at(-1)!;
    const second = pool.renew();
    await first;
    ready(started.at(-1)!);
    await second;
    expect(replaced.isClosed).toBe(true);
  });
});

describe("a server's start that waits for the graphs", () => {
  const hasLoaded = async ({ loaded }: ReturnType<typeof aPool>): Promise<boolean> => {
    let isOver = false;
    void loaded.then(() => (isOver = true));
    await vi.advanceTimersByTimeAsync(0);
    return isOver;
  };

  test("continues when a process has loaded them, even if an earlier one died", async () => {
    const pool = aPool();
    started[0]!.options.onEnd("exit", "exited with 1");
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(await hasLoaded(pool)).toBe(false);
    ready(started.at(-1)!);
    expect(await hasLoaded(pool)).toBe(true);
  });

  test("continues when code that is being written can't be loaded, and when the server stops", async () => {
    const broken = aPool({ spares: 0 });
    started[0]!.options.onMessage({ kind: "failed", message: "a bracket is missing" });
    expect(await hasLoaded(broken)).toBe(true);
    const stopped = aPool();
    await stopped.close();
    expect(await hasLoaded(stopped)).toBe(true);
  });
});

describe("the reason why processes do not start", () => {
  test("is logged about once a minute", async () => {
    const pool = aPool();
    expect(started[0]!.options.isFailureLogged).toBe(false);
    for (let times = 0; times < 24; times += 1) {
      started.at(-1)!.options.onEnd("start", "exited with 1");
      await vi.advanceTimersByTimeAsync(LONG_MS / 12);
    }
    await pool.close();
    expect(lines.filter((line) => line.includes("before it was ready"))).toHaveLength(2);
  });

  test("is logged again after a process was ready", async () => {
    const pool = aPool();
    started[0]!.options.onEnd("start", "exited with 1");
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect(started.at(-1)!.options.isFailureLogged).toBe(true);
    ready(started.at(-1)!);
    expect(started.at(-1)!.options.isFailureLogged).toBe(false);
    await pool.close();
  });
});
