import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { createIdClock, timeOfId } from "../../src/checkpoints/saver/id-clock.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";
import { listeningLogger } from "../helpers/parts.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

const HOUR_MS = 3_600_000;

/** The id that a clock would have made which is so much ahead. */
const ahead = (id: string, ms: number): string => {
  const hex = id.replaceAll("-", "");
  const ticks = (BigInt(`0x${hex.slice(0, 12)}${hex.slice(13, 16)}`) + BigInt(ms) * 10_000n)
    .toString(16)
    .padStart(15, "0");
  return `${ticks.slice(0, 8)}-${ticks.slice(8, 12)}-6${ticks.slice(12)}${id.slice(18)}`;
};

const answer = () =>
  new StateGraph(MessagesAnnotation)
    .addNode("answer", ({ messages }) => ({ messages: [new AIMessage(`answer ${messages.length}`)] }))
    .addEdge("__start__", "answer")
    .addEdge("answer", "__end__");

/** A run of a thread by a process that knows nothing of those before. */
const turn = async (threadId: string, text: string, checkpointId?: string): Promise<void> => {
  const saver = opened.anotherProcess().saverForAttempt(await aRunningRun(opened.database, threadId));
  await answer()
    .compile({ checkpointer: saver })
    .invoke(
      { messages: [new HumanMessage(text)] },
      { configurable: { thread_id: threadId, ...(checkpointId && { checkpoint_id: checkpointId }) } },
    );
  await saver.flush();
};

const stateOf = async (threadId: string) => {
  const config = { configurable: { thread_id: threadId } };
  return await answer().compile({ checkpointer: opened.anotherProcess().saver }).getState(config);
};

const texts = async (threadId: string): Promise<string[]> =>
  ((await stateOf(threadId)).values as typeof MessagesAnnotation.State).messages.map(({ text }) => text);

/** As if the thread's last turn had been made by a server whose clock is so much ahead; returns the id of the checkpoint. */
const putForward = async (threadId: string, ms: number): Promise<string> => {
  const { config } = await stateOf(threadId);
  const id = String(config.configurable?.["checkpoint_id"]);
  const later = ahead(id, ms);
  await opened.database.query(
    "update threadloom.checkpoints set checkpoint_id = $1 where checkpoint_id = $2",
    [later, id],
  );
  return later;
};

test("the id of a checkpoint tells when it was made", () => {
  const before = Date.now();
  const time = timeOfId(uuid6(-1)) ?? 0;
  expect(time).toBeGreaterThanOrEqual(before);
  expect(time).toBeLessThan(Date.now() + 1);
  expect(timeOfId(ahead(uuid6(-1), HOUR_MS))).toBeGreaterThanOrEqual(before + HOUR_MS);
  expect(timeOfId("43cfb9c0-7b0a-543c-80f1-fbe50da20c83")).toBeUndefined();
});

test("a turn behind one of a server whose clock is ahead is the newest all the same", async () => {
  const { threadId } = await aRunningRun(opened.database);
  await turn(threadId, "one");
  await putForward(threadId, 2_000);
  await turn(threadId, "two");
  expect(await texts(threadId)).toEqual(["one", "answer 1", "two", "answer 3"]);
});

test("a turn that would be taken for older than the one before it is refused instead of lost", async () => {
  const { threadId } = await aRunningRun(opened.database);
  await turn(threadId, "one");
  const before = String((await stateOf(threadId)).parentConfig?.configurable?.["checkpoint_id"]);
  await putForward(threadId, HOUR_MS);
  await expect(turn(threadId, "two")).rejects.toThrow(/of a time to come, in 3[56]\d\d s.*NTP/);
  // From an older checkpoint, too: its turn would be behind the newest.
  await expect(turn(threadId, "other", before)).rejects.toThrow("of a time to come");
  expect(await texts(threadId)).toEqual(["one", "answer 1"]);
});

test("a clock that a test holds keeps nobody waiting for ever", async () => {
  const { threadId } = await aRunningRun(opened.database);
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  await turn(threadId, "one");
  await turn(threadId, "two");
  expect(await texts(threadId)).toHaveLength(4);
});

test("the log says that clocks differ, not for each run", async () => {
  const { logger, lines } = listeningLogger();
  const clock = createIdClock(logger);
  const later = ahead(uuid6(-1), HOUR_MS);
  for (let at = 0; at < 3; at += 1) await expect(clock.pass(later)).rejects.toThrow("time to come");
  await clock.pass(ahead(uuid6(-1), -HOUR_MS));
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 40, seconds: expect.any(Number) as number },
  ]);
});
