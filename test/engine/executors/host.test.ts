import { expect, test, vi } from "vitest";
import type { ClaimedRunRow } from "../../../src/platform/database/tables.ts";
import type {
  GraphExecutor,
  GraphResult,
  StopReason,
  WatchedSink,
} from "../../../src/engine/executors/executor.ts";
import { LeaseLostError } from "../../../src/platform/domain/errors.ts";
import { PassedFaultError } from "../../../src/engine/executors/process/messages.ts";
import { RemoteExecution } from "../../../src/engine/executors/process/remote-execution.ts";
import { createHost } from "../../../src/engine/executors/process/host.ts";
import { NO_RECORDS } from "../no-records.ts";

const SINK: WatchedSink = {
  emit: () => undefined,
  needsPause: false,
  pause: () => Promise.resolve(),
  wanted: false,
  onWanted: () => undefined,
  hasLog: false,
  logged: () => undefined,
};

/** What the main process receives of a graph's end, through the messages of the pipe. */
const resultThere = async (result: GraphResult) => {
  const executor: Pick<GraphExecutor<GraphResult>, "execute"> = {
    execute: () => ({
      result: Promise.resolve(result),
      stop: () => undefined,
      wantValues: () => undefined,
    }),
  };
  const there = new RemoteExecution(
    1,
    { run_id: "run", delete_thread: false } as ClaimedRunRow,
    SINK,
    { isAlone: false, publishesProtocol: false, records: NO_RECORDS, onGraphEnded: () => undefined },
    vi.fn(),
  );
  const host = createHost({
    executor,
    send: (message) => {
      const sent = JSON.parse(JSON.stringify(message)) as typeof message;
      if (sent.kind === "result") there.arrived(sent.result);
    },
    isLoss: () => false,
    residentBytes: () => 0,
    onClose: () => undefined,
  });
  there.wantValues();
  there.placeAt({ kill: () => undefined, send: (message) => host.receive(message) });
  return await there.result;
};

test("a run whose values have no JSON form succeeds, as it does in the main process, and its waiting caller gets an error", async () => {
  const result = await resultThere({
    kind: "completed",
    values: () => {
      throw new TypeError("a getter throws");
    },
    interrupts: undefined,
    outputKeys: undefined,
  });
  if (result.kind !== "completed") return expect.fail(`it is ${result.kind}`);
  expect(() => result.values()).toThrow("a getter throws");
});

/** What a graph's process learns from the log of the main process, and how the main process sees an attempt that fails by it. */
const askingTheLog = async (logged: () => Promise<void>) => {
  const stopped: StopReason[] = [];
  const executor: Pick<GraphExecutor<GraphResult>, "execute"> = {
    execute: (_, sink) => ({
      result: Promise.resolve(sink.logged()).then(
        () => ({ kind: "completed", values: () => undefined, interrupts: undefined, outputKeys: undefined }),
        (error: unknown) => ({ kind: "failed", error }),
      ),
      stop: (reason) => void stopped.push(reason),
      wantValues: () => undefined,
    }),
  };
  const there = new RemoteExecution(
    1,
    { run_id: "run", delete_thread: false } as ClaimedRunRow,
    { ...SINK, hasLog: true, logged },
    { isAlone: false, publishesProtocol: false, records: NO_RECORDS, onGraphEnded: () => undefined },
    vi.fn(),
  );
  const host = createHost({
    executor,
    send: (message) => {
      if (message.kind === "log") there.log();
      const sent = JSON.parse(JSON.stringify(message)) as typeof message;
      if (sent.kind === "result") there.arrived(sent.result);
    },
    isLoss: () => false,
    residentBytes: () => 0,
    onClose: () => undefined,
  });
  there.placeAt({
    kill: () => undefined,
    send: (message) => host.receive(JSON.parse(JSON.stringify(message)) as typeof message),
  });
  return { result: await there.result, stopped };
};

test("work in a graph's process continues when the log has its events", async () => {
  const { result } = await askingTheLog(() => Promise.resolve());
  expect(result.kind).toBe("completed");
});

test("work in a graph's process fails if the log refuses its events", async () => {
  const { result } = await askingTheLog(() => Promise.reject(new Error("the database refuses them")));
  expect(result).toMatchObject({ kind: "failed", error: { message: "the database refuses them" } });
  expect(result).not.toMatchObject({ error: expect.any(PassedFaultError) as unknown });
});

test("an attempt in a graph's process is tried again if the log waited for the database in vain", async () => {
  const cancelled = Object.assign(new Error("canceling statement"), { code: "57014" });
  const { result } = await askingTheLog(() => Promise.reject(cancelled));
  expect(result).toMatchObject({ kind: "failed", error: expect.any(PassedFaultError) as unknown });
});

test("a graph's process stops an attempt whose events show that it has lost its run", async () => {
  const { stopped } = await askingTheLog(() => Promise.reject(new LeaseLostError("run", 1)));
  expect(stopped).toEqual([{ kind: "lease-lost" }]);
});

test("values, interrupts and the keys of the output arrive unchanged", async () => {
  const result = await resultThere({
    kind: "completed",
    values: () => `{"a":1}`,
    interrupts: () => "[]",
    outputKeys: ["a"],
  });
  if (result.kind !== "completed") return expect.fail(`it is ${result.kind}`);
  expect([result.values(), result.interrupts?.(), result.outputKeys]).toEqual([`{"a":1}`, "[]", ["a"]]);
});
