import { Client } from "@langchain/langgraph-sdk";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import {
  command,
  EVERYTHING,
  isInput,
  isRoot,
  openFrames,
  started,
  type Frame,
  type FrameStream,
} from "./frames.ts";

/** The ends of runs over event streaming: iterations of both SDKs end, and a later reader receives the same. */

let server: TestServer;
let api: Api;
const streams: FrameStream[] = [];
beforeAll(async () => {
  server = await startTestServer({ runTimeoutSeconds: 10 });
  api = apiOf(server);
});
afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});
afterAll(() => server.close());

const open = async (threadId: string, body?: object): Promise<FrameStream> => {
  const stream = await openFrames(server.url, threadId, body);
  streams.push(stream);
  return stream;
};
const WATCHER = { channels: ["lifecycle", "input"] };
const endsOf = (frames: readonly Frame[], runId: string): unknown[] =>
  frames
    .filter(({ event_id: id }) => id.startsWith(`synth:${runId}:`) && !id.endsWith(":running"))
    .map(({ method, params: { data } }) => (method === "lifecycle" ? data : method));
const aTurn = { assistant_id: "two-step", input: saying("hello") };
const SLEEP = { assistant_id: "sleep", input: { milliseconds: 600_000 } };
const NEVER_OPENED = { assistant_id: "gate", input: { label: "never opened" } };

/** The end of a run for a present reader, and for a later reader of data: they are the same, number by number. */
const endOf = async (
  threadId: string,
  params: object,
  act: (runId: string) => Promise<unknown>,
  last: string,
): Promise<unknown[]> => {
  const stream = await open(threadId);
  const { runId } = await started(server.url, threadId, params);
  await stream.until(({ event_id: id }) => id === `synth:${runId}:running`);
  await act(runId);
  await stream.until(({ event_id: id }) => id === `synth:${runId}:${last}`);
  const later = await open(threadId);
  await later.until(({ event_id: id }) => id === `synth:${runId}:${last}`);
  const placed = ({ seen }: FrameStream): unknown[] =>
    seen.filter(({ event_id: id }) => id.startsWith("synth:")).map(({ seq, event_id: id }) => [seq, id]);
  expect(placed(later)).toEqual(placed(stream));
  return endsOf(stream.seen, runId);
};
const nothing = async (): Promise<void> => undefined;

describe("a run", () => {
  test("that fails sends the reason", async () => {
    const ends = await endOf(newId(), { assistant_id: "failing", input: {} }, nothing, "failed");
    expect(ends).toMatchObject([{ event: "failed", error: expect.stringMatching(/./) }]);
  });

  test("that takes too long sends that", async () => {
    const ends = await endOf(newId(), NEVER_OPENED, nothing, "failed");
    expect(ends).toMatchObject([{ event: "failed", error: "The run did not end within 10 seconds." }]);
  });

  test("that is cancelled is interrupted for JavaScript, and failed for Python", async () => {
    const threadId = newId();
    const ends = await endOf(threadId, SLEEP, (runId) => api.cancel(threadId, runId), "failed");
    expect(ends).toMatchObject([
      { event: "interrupted" },
      { event: "failed", error: "The run was cancelled." },
    ]);
  });

  test("that stops before a node is interrupted for JavaScript, and completed for Python", async () => {
    const params = { assistant_id: "two-step", input: saying("hello"), interrupt_before: "*" };
    const ends = await endOf(newId(), params, nothing, "completed");
    expect(ends).toMatchObject([{ event: "interrupted" }, { event: "completed" }]);
  });

  test("that is rolled back, or deleted with its thread, sends its end to its readers", async () => {
    const threadId = newId();
    const stream = await open(threadId);
    const first = await started(server.url, threadId, SLEEP);
    await stream.until(({ event_id: id }) => id === `synth:${first.runId}:running`);
    await api.cancel(threadId, first.runId, "wait=1&action=rollback");
    await stream.until(({ event_id: id }) => id === `synth:${first.runId}:failed`);
    const second = await started(server.url, threadId, SLEEP);
    await stream.until(({ event_id: id }) => id === `synth:${second.runId}:running`);
    await api.remove(`/threads/${threadId}`);
    await stream.until(({ event_id: id }) => id === `synth:${second.runId}:failed`);
    expect(endsOf(stream.seen, first.runId)).toEqual(endsOf(stream.seen, second.runId));
  });

  test.each(["idle", "busy"])(
    "of a thread that was deleted while %s, and created again, is sent whole",
    async (how) => {
      const threadId = newId();
      const stream = await open(threadId);
      const turn = { assistant_id: "two-step", input: saying("hello") };
      for (let count = 0; count < 2; count += 1) {
        const { runId } = await started(server.url, threadId, turn);
        await stream.until(({ event_id: id }) => id === `synth:${runId}:completed`);
      }
      if (how === "busy") {
        const { runId } = await started(server.url, threadId, SLEEP);
        await stream.until(({ event_id: id }) => id === `synth:${runId}:running`);
      }
      await api.remove(`/threads/${threadId}`);
      const before = stream.seen.length;
      const { runId } = await started(server.url, threadId, turn);
      await stream.until(({ event_id: id }) => id === `synth:${runId}:completed`);
      const sent = stream.seen.slice(before);
      const own = sent.slice(sent.findIndex(({ event_id: id }) => id.endsWith(":failed")) + 1);
      expect(own[0]?.event_id).toBe(`synth:${runId}:running`);
      expect(own.filter(({ method }) => method === "values").length).toBeGreaterThan(1);
    },
  );

  test("that never began sends its end after the run that it waited for", async () => {
    for (const how of ["cancelled", "replaced"]) {
      const threadId = newId();
      const stream = await open(threadId);
      const running = await started(server.url, threadId, SLEEP);
      const queued = { ...SLEEP, multitask_strategy: "enqueue" };
      // Includes a run of the other wire, whose events are not kept otherwise.
      const waiting = [
        (await started(server.url, threadId, queued)).runId,
        (await api.aRun(threadId, queued)).run_id,
      ];
      const ends = waiting.map((runId) => `synth:${runId}:failed`);
      if (how === "cancelled") {
        for (const runId of waiting) await api.cancel(threadId, runId);
        await api.cancel(threadId, running.runId);
      } else await started(server.url, threadId, { ...aTurn, multitask_strategy: "interrupt" });
      await stream.until(({ event_id: id }) => id === ends[1]);
      for (const runId of waiting) {
        expect(endsOf(stream.seen, runId)).toMatchObject([
          { event: "interrupted" },
          { event: "failed", error: "The run was cancelled." },
        ]);
      }
      const sent = stream.seen.map(({ event_id: id }) => id);
      expect(sent.indexOf(`synth:${running.runId}:failed`)).toBeLessThan(sent.indexOf(ends[0] ?? ""));
      const numbers = stream.seen.map(({ seq }) => seq);
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
      if (how === "replaced") {
        await stream.until(isRoot("completed"));
        continue;
      }
      // A client that was disconnected before it received them.
      const late = await open(threadId);
      await late.until(({ event_id: id }) => id === ends[1]);
      expect(late.seen.filter(isRoot("failed")).map(({ seq }) => seq)).toEqual(
        stream.seen.filter(isRoot("failed")).map(({ seq }) => seq),
      );
    }
  });

  test.each(["cancelled", "replaced"])(
    "that is rolled back before it began (%s) sends its end after the run that it waited for",
    async (how) => {
      const threadId = newId();
      const stream = await open(threadId);
      const running = await started(server.url, threadId, SLEEP);
      const queued = { ...SLEEP, multitask_strategy: "enqueue" };
      // Includes a run of the other wire, whose events are not kept otherwise.
      const waiting = [
        (await started(server.url, threadId, queued)).runId,
        (await api.aRun(threadId, queued)).run_id,
      ];
      if (how === "cancelled") {
        for (const runId of [...waiting, running.runId]) await api.cancel(threadId, runId, "action=rollback");
      } else await started(server.url, threadId, { ...aTurn, multitask_strategy: "rollback" });
      const ends = waiting.map((runId) => `synth:${runId}:failed`);
      await stream.until(({ event_id: id }) => id === ends[1]);
      for (const runId of waiting) {
        expect(endsOf(stream.seen, runId)).toEqual([
          { event: "interrupted" },
          { event: "failed", error: "The run was rolled back." },
        ]);
      }
      if (how === "replaced") await stream.until(isRoot("completed"));
      const sent = stream.seen.map(({ event_id: id }) => id);
      expect(sent.indexOf(`synth:${running.runId}:failed`)).toBeLessThan(sent.indexOf(ends[0] ?? ""));
      const numbers = stream.seen.map(({ seq }) => seq);
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    },
  );

  test("ends the iterations of JavaScript when its client cancels it", async () => {
    const client = new Client({ apiUrl: server.url, apiKey: null });
    const thread = client.threads.stream(newId(), { assistantId: "sleep" });
    const { run_id: runId = "" } = await thread.run.start({ input: { milliseconds: 600_000 } });
    const values = (async () => {
      for await (const _value of thread.values);
    })();
    await client.runs.cancel(thread.threadId, runId);
    await values;
    await thread.close();
  });
});

describe("a client that connects after a run has ended", () => {
  test("receives the end on channels with data, and not on those with only ends and questions", async () => {
    const threadId = newId();
    const { runId } = await started(server.url, threadId, aTurn);
    await api.untilRunIs(threadId, runId, "success");
    const watcher = await open(threadId, WATCHER);
    const data = await open(threadId);
    await data.until(isRoot("completed"));
    const next = await started(server.url, threadId, aTurn);
    await watcher.until(isRoot("completed"));
    expect(watcher.seen.map(({ event_id: id }) => id)).toEqual([
      `synth:${next.runId}:running`,
      `synth:${next.runId}:completed`,
    ]);
  });

  test("does not receive the end of a run that was followed by another", async () => {
    const threadId = newId();
    const first = await started(server.url, threadId, aTurn);
    await api.untilRunIs(threadId, first.runId, "success");
    const second = await started(server.url, threadId, aTurn);
    await api.untilRunIs(threadId, second.runId, "success");
    const data = await open(threadId);
    await data.until(isRoot("completed"));
    expect(endsOf(data.seen, first.runId)).toEqual([]);
    expect(data.seen.filter(({ method }) => method === "values").length).toBeGreaterThan(4);
  });

  test("receives the pending question on any channel, also of a run of the other wire", async () => {
    for (const wire of ["first", "protocol"]) {
      const threadId = newId();
      const params = { assistant_id: "approval", input: saying("tea") };
      if (wire === "protocol") await started(server.url, threadId, params);
      else await api.aFinishedRun(threadId, { ...params, if_not_exists: "create" });
      await api.untilQuiet(threadId);
      for (const body of [WATCHER, undefined]) {
        const late = await open(threadId, body);
        await late.until(isRoot("interrupted"));
        expect(late.seen.filter(isInput)).toHaveLength(1);
      }
    }
  });

  test("receives the values of a run before 19 that were cancelled before they began", async () => {
    const threadId = newId();
    const first = await started(server.url, threadId, aTurn);
    await api.untilRunIs(threadId, first.runId, "success");
    const running = await started(server.url, threadId, SLEEP);
    const waiting: string[] = [];
    for (let count = 0; count < 19; count += 1) {
      const run = await api.aRun(threadId, { ...SLEEP, multitask_strategy: "enqueue" });
      waiting.push(run.run_id);
    }
    for (const runId of [...waiting, running.runId]) await api.cancel(threadId, runId);
    await api.untilQuiet(threadId);
    const late = await open(threadId);
    await late.until(({ event_id: id }) => id === `synth:${waiting.at(-1)}:failed`);
    const own = late.seen.findIndex(({ event_id: id }) => id === `synth:${running.runId}:running`);
    expect(late.seen.slice(0, own).filter(({ method }) => method === "values")).not.toEqual([]);
  });

  test("receives the pending question also after a later run was cancelled before it began", async () => {
    const threadId = newId();
    await started(server.url, threadId, { assistant_id: "approval", input: saying("tea") });
    await api.untilQuiet(threadId);
    const later = { ...aTurn, input: null, after_seconds: 3_600 };
    const { runId } = await started(server.url, threadId, later);
    await api.cancel(threadId, runId);
    for (const body of [WATCHER, undefined]) await (await open(threadId, body)).until(isInput);
    const [interrupt] = Object.values((await api.thread(threadId)).interrupts).flat();
    const answering = { interrupt_id: interrupt?.id, response: true };
    expect((await command(server.url, threadId, "input.respond", answering)).answer.type).toBe("success");
    await api.untilQuiet(threadId);
    expect((await api.state(threadId)).values["status"]).toBe("sent");
  });

  test("receives the data of earlier runs before the question of a run that was not logged, in rising numbers", async () => {
    const threadId = newId();
    const first = await started(server.url, threadId, aTurn);
    await api.untilRunIs(threadId, first.runId, "success");
    await api.aFinishedRun(threadId, { assistant_id: "approval", input: saying("tea") });
    // The other server has no event of the run in memory.
    const replica = await startTestServer({ connectionString: server.connectionString });
    try {
      for (const since of [undefined, 1]) {
        const late = await openFrames(replica.url, threadId, { channels: EVERYTHING, since });
        streams.push(late);
        await late.until(isInput);
        await late.until(isRoot("interrupted"));
        const numbers = late.seen.map(({ seq }) => seq);
        expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
        expect(late.seen.filter(({ method }) => method === "values").length).toBeGreaterThan(1);
        expect(late.seen.filter(isInput)).toHaveLength(1);
        late.close();
      }
    } finally {
      await replica.close();
    }
  });

  test("does not receive a question that was answered", async () => {
    const threadId = newId();
    await started(server.url, threadId, { assistant_id: "approval", input: saying("tea") });
    await api.untilQuiet(threadId);
    await started(server.url, threadId, { assistant_id: "approval", input: true });
    await api.untilQuiet(threadId);
    const late = await open(threadId);
    await late.until(isRoot("completed"));
    expect(late.seen.filter(isInput)).toEqual([]);
  });

  test("receives a question and its later events once each, if it names the event before", async () => {
    const threadId = newId();
    const stream = await open(threadId);
    await started(server.url, threadId, { assistant_id: "approval", input: saying("tea") });
    const { seq } = await stream.until(isInput);
    await started(server.url, threadId, { assistant_id: "approval", input: true });
    await stream.until(isRoot("completed"));
    const again = await open(threadId, { channels: ["values", "lifecycle", "input"], since: seq });
    await again.until(isRoot("completed"));
    expect(again.seen.filter(isInput)).toEqual([]);
    expect(again.seen.filter(isRoot("interrupted", "running", "completed"))).toHaveLength(3);
  });
});
