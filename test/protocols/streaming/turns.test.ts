import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { closingFrames, command, EVERYTHING, isInput, isRoot, started } from "./frames.ts";

/** A thread with commands and a stream over event streaming, read frame by frame. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const open = closingFrames(() => server);
const aTurn = { assistant_id: "two-step", input: saying("hello") };

describe("a turn", () => {
  test("is sent from its beginning to its end, with rising numbers and ids of its own", async () => {
    const threadId = newId();
    const stream = await open(threadId);
    const { runId, since } = await started(server.url, threadId, aTurn);
    await stream.until(isRoot("completed"));
    const frames = stream.seen;
    expect(since).toBe(0);
    expect(frames[0]).toMatchObject({
      type: "event",
      event_id: `synth:${runId}:running`,
      method: "lifecycle",
      params: { data: { event: "running", graph_name: "two-step" } },
    });
    expect(frames.at(-1)).toMatchObject({
      event_id: `synth:${runId}:completed`,
      params: { data: { event: "completed", graph_name: "two-step" } },
    });
    expect(frames.filter(({ method }) => method === "values").length).toBeGreaterThan(1);
    expect(frames.map(({ seq }) => seq)).toEqual(frames.map(({ seq }) => seq).sort((a, b) => a - b));
    expect(new Set(frames.map(({ event_id }) => event_id)).size).toBe(frames.length);
  });

  test("is sent to its end to a client that opens the stream while the turn ends", async () => {
    // With the database queries in the wrong order, one of six or seven turns ended between two of them.
    for (let turn = 0; turn < 30; turn += 1) {
      const threadId = newId();
      const { runId } = await started(server.url, threadId, aTurn);
      const stream = await open(threadId, { channels: ["values", "lifecycle", "input"] });
      const end = await stream.until(isRoot("completed"));
      expect(end.event_id).toBe(`synth:${runId}:completed`);
    }
  });

  test("sends its question after all its data, and continues with the answer", async () => {
    const threadId = newId();
    const stream = await open(threadId);
    const { runId } = await started(server.url, threadId, {
      assistant_id: "approval",
      input: { topic: "tea" },
    });
    await stream.until(isRoot("interrupted"));
    const request = stream.seen.find(isInput);
    expect(stream.seen.at(-2)).toBe(request);
    expect(request?.event_id.startsWith(`synth:${runId}:input:`)).toBe(true);
    const { interrupt_id, payload, value } = request?.params.data ?? {};
    expect(payload).toEqual(value);
    const { answer } = await command(server.url, threadId, "input.respond", {
      namespace: [],
      interrupt_id,
      response: "yes",
    });
    expect(answer).toMatchObject({ type: "success", id: 7, meta: { thread_id: threadId } });
    await stream.until(isRoot("completed"));
  });

  test("announces to all question listeners which ones a run answers, before the run's data", async () => {
    const threadId = newId();
    const tabs = [await open(threadId), await open(threadId, { channels: ["input"] })];
    await started(server.url, threadId, { assistant_id: "approval", input: { topic: "tea" } });
    const asked = [];
    for (const tab of tabs) asked.push((await tab.until(isInput)).params.data["interrupt_id"]);
    await tabs[0]?.until(isRoot("interrupted"));
    await started(server.url, threadId, { assistant_id: "approval", input: true });
    for (const tab of tabs) {
      const answered = await tab.until(({ method }) => method === "input.answered");
      expect(answered.params).toMatchObject({ namespace: [], data: { interrupt_ids: [asked[0]] } });
    }
    const seen = tabs[0]?.seen ?? [];
    expect(seen.at(-2)?.params.data).toMatchObject({ event: "running" });
    await tabs[0]?.until(isRoot("completed"));
  });

  test("sends the reason of a refused strict answer, and keeps waiting", async () => {
    const threadId = newId();
    const stream = await open(threadId);
    await started(server.url, threadId, { assistant_id: "approval", input: { topic: "tea" } });
    await stream.until(isRoot("interrupted"));
    const waiting = stream.seen.find(isInput)?.params.data["interrupt_id"];
    const answerTo = async (interrupt_id: unknown, strict_resume: boolean) =>
      (
        await command(server.url, threadId, "input.respond", {
          namespace: [],
          ...{ interrupt_id, strict_resume, response: "yes" },
        })
      ).answer;
    const other = "0123456789abcdef".repeat(2);
    expect(await answerTo(other, false)).toMatchObject({ type: "error", error: "no_such_interrupt" });
    const { type, result } = await answerTo(other, true);
    expect(type).toBe("success");
    const refused = await stream.until(isRoot("failed"));
    expect(refused.event_id).toBe(`synth:${result?.run_id}:failed`);
    expect(refused.params.data).toMatchObject({
      error: `Interrupt '${other}' does not wait for an answer.`,
      reason: "no_such_interrupt",
      interrupt_ids: [other],
      pending_ids: [waiting],
    });
    expect(await answerTo(waiting, true)).toMatchObject({ type: "success" });
    await stream.until(isRoot("completed"));
    expect(await answerTo(waiting, true)).toMatchObject({ type: "success" });
    expect((await stream.until(isRoot("failed"))).params.data).toMatchObject({ pending_ids: [] });
  });
});

describe("a reconnecting client", () => {
  test("receives the events after the number that it names, and no others", async () => {
    const threadId = newId();
    const first = await open(threadId);
    for (let turn = 0; turn < 2; turn += 1) {
      const { runId } = await started(server.url, threadId, aTurn);
      await first.until(({ event_id }) => event_id === `synth:${runId}:completed`);
    }
    for (const [index, { seq, event_id: id }] of first.seen.slice(0, -1).entries()) {
      const again = await open(threadId, { channels: EVERYTHING, since: seq });
      await again.until(({ event_id }) => event_id === first.seen.at(-1)?.event_id);
      const rest = first.seen.slice(index + 1);
      const ids = rest.map((frame) => [frame.seq, frame.event_id]);
      expect(again.seen.map((frame) => [frame.seq, frame.event_id])).toEqual(ids);
      if (id.startsWith("synth:")) continue;
      const named = await open(threadId, undefined, { "last-event-id": id });
      await named.until(({ event_id }) => event_id === first.seen.at(-1)?.event_id);
      expect(named.seen.map((frame) => [frame.seq, frame.event_id])).toEqual(ids);
    }
  });
});
