import { expect } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { difference, type Answer } from "./cells.ts";
import { listenByEvents, listenBySocket, type Listener } from "./listeners.ts";
import { RUN } from "./requests.ts";

/** The operations of two users: open streams, webhooks, and requests for each other's records. */

export const OPEN_OPERATIONS = [
  "listen by WebSocket",
  "listen by stream of events",
  "listen by stream of thread",
  "batch",
  "batch that makes its thread",
  "run with a webhook",
  "search deliveries",
  "delivery of other",
  "replay delivery of other",
  "join run of other",
  "stream run of other",
  "cancel run of other",
  "run of other",
  "patch cron",
  "patch cron of other",
  "delete cron of other",
] as const;
export type OpenOperation = (typeof OPEN_OPERATIONS)[number];

/** How many operations really had an effect: many random ones find nothing to do. */
export const tally = { compared: 0, listened: 0, reported: 0, delivered: 0 };

export interface OpenModel {
  name: string;
  threads: Set<string>;
  crons: Set<string>;
  /** Runs whose ids were in an answer. */
  runs: { threadId: string; runId: string }[];
  listeners: Listener[];
  /** The number of webhook deliveries that must arrive. */
  deliveries: number;
}

export interface OpenContext {
  url: string;
  /** The address of the webhook receiver; the user's name is appended. */
  receiver: string;
  threadId: string;
  ask: (method: string, path: string, body?: unknown) => Promise<Answer>;
  isMissing: (answer: Answer, what: string, id: string) => void;
}

/** The runs of the thread have changed, so the owed run is no longer the newest, or is gone. */
export const forgetOwed = (me: OpenModel, threadId: string, { isGone }: { isGone: boolean }): void => {
  for (const listener of me.listeners.filter((one) => one.threadId === threadId)) {
    listener.owed = undefined;
    if (isGone) listener.isOwn = false;
  }
  if (isGone) me.deliveries = 0;
};

export const performOpen = async (
  me: OpenModel,
  other: OpenModel,
  operation: OpenOperation,
  { url, receiver, threadId, ask, isMissing }: OpenContext,
): Promise<void> => {
  const owns = me.threads.has(threadId);
  const headers = { authorization: `Bearer ${me.name}` };
  const listening = { url, threadId, headers, isOwn: owns };
  const mark = `mark-of-${me.name}`;
  const run = { ...RUN, input: { messages: [{ role: "user", content: mark }] }, thread_id: threadId };

  /** Expects the same answer for the other user's ids as for ids that never existed. */
  const isAsIfMissing = async (
    method: string,
    pathOf: (ids: readonly string[]) => string,
    hidden: readonly string[],
    body?: unknown,
  ): Promise<void> => {
    const missing = hidden.map(() => newId());
    const [one, two] = [await ask(method, pathOf(hidden), body), await ask(method, pathOf(missing), body)];
    tally.compared += 1;
    const pairs = hidden.map((id, index) => [id, missing[index] ?? ""] as const);
    expect([operation, one.status, difference(one, two, pairs)]).toEqual([operation, 404, ""]);
  };
  const ofTheirRun = async (method: string, suffix: string): Promise<void> => {
    const theirs = other.runs.at(-1);
    if (theirs === undefined) return;
    // The thread may belong to this user now, under the same id.
    if (me.threads.has(theirs.threadId))
      return await isAsIfMissing(method, ([runId]) => `/threads/${theirs.threadId}/runs/${runId}${suffix}`, [
        theirs.runId,
      ]);
    await isAsIfMissing(method, ([thread, runId]) => `/threads/${thread}/runs/${runId}${suffix}`, [
      theirs.threadId,
      theirs.runId,
    ]);
  };
  /** Creates two runs, one behind the other, and waits for both. */
  const batched = async (fields: object): Promise<Answer> => {
    const one = { ...run, multitask_strategy: "enqueue", ...fields };
    const answer = await ask("POST", "/runs/batch", [one, one]);
    if (answer.status !== 200) return answer;
    me.threads.add(threadId);
    const runIds = (JSON.parse(answer.text) as { run_id: string }[]).map(({ run_id }) => run_id);
    for (const runId of runIds) {
      me.runs.push({ threadId, runId });
      expect((await ask("GET", `/threads/${threadId}/runs/${runId}/join`)).status).toBe(200);
    }
    for (const listener of me.listeners)
      if (listener.threadId === threadId && listener.isOwn) listener.owed = runIds.at(-1);
    return answer;
  };

  switch (operation) {
    case "listen by WebSocket":
      return void me.listeners.push(await listenBySocket(listening));
    case "listen by stream of events":
    case "listen by stream of thread": {
      const isProtocol = operation === "listen by stream of events";
      const answer = await listenByEvents(listening, isProtocol ? "/stream/events" : "/stream");
      if (answer.listener !== undefined) return void me.listeners.push(answer.listener);
      expect([operation, isProtocol || owns]).toEqual([operation, false]);
      return isMissing({ ...answer, headers: {} }, "Thread", threadId);
    }
    case "batch": {
      const answer = await batched({});
      if (owns) expect([operation, answer.status]).toEqual([operation, 200]);
      else isMissing(answer, "Thread", threadId);
      return;
    }
    case "batch that makes its thread": {
      const answer = await batched({ if_not_exists: "create" });
      if (owns) return expect([operation, answer.status]).toEqual([operation, 200]);
      if (answer.status !== 200)
        expect([operation, answer.status, answer.text]).toEqual([
          ...[operation, 409],
          JSON.stringify({ detail: `Thread '${threadId}' already exists.` }),
        ]);
      return;
    }
    case "run with a webhook": {
      const { thread_id: _named, ...body } = { ...run, webhook: `${receiver}/${me.name}` };
      const answer = await ask("POST", `/threads/${threadId}/runs/wait`, body);
      if (!owns) return isMissing(answer, "Thread", threadId);
      expect([operation, answer.status]).toEqual([operation, 200]);
      forgetOwed(me, threadId, { isGone: false });
      me.deliveries += 1;
      return;
    }
    case "search deliveries":
      // The address of each delivery contains its user's name, so `ask` would report it as a trace.
      return void (await ask("POST", "/webhooks/deliveries/search", {}));
    case "delivery of other":
    case "replay delivery of other": {
      const theirs = other.runs.at(-1);
      if (theirs === undefined) return;
      const [method, suffix] = operation === "delivery of other" ? ["GET", ""] : ["POST", "/replay"];
      return await isAsIfMissing(method, ([id]) => `/webhooks/deliveries/${id}${suffix}`, [theirs.runId]);
    }
    case "run of other":
      return await ofTheirRun("GET", "");
    case "join run of other":
      return await ofTheirRun("GET", "/join");
    case "stream run of other":
      return await ofTheirRun("GET", "/stream");
    case "cancel run of other":
      return await ofTheirRun("POST", "/cancel");
    case "patch cron": {
      const [cronId] = me.crons;
      if (cronId === undefined) return;
      const { status } = await ask("PATCH", `/runs/crons/${cronId}`, { input: { mark }, metadata: { mark } });
      return expect([operation, status]).toEqual([operation, 200]);
    }
    case "patch cron of other":
    case "delete cron of other": {
      const [cronId] = other.crons;
      if (cronId === undefined) return;
      const patches = operation === "patch cron of other";
      return await isAsIfMissing(
        patches ? "PATCH" : "DELETE",
        ([id]) => `/runs/crons/${id}`,
        [cronId],
        patches ? { enabled: false } : undefined,
      );
    }
  }
};

/** Checks everything that a user received once all work has finished, and closes the open streams. */
export const assertReceived = async (
  me: OpenModel,
  traces: readonly string[],
  received: () => readonly { path: string; body: string }[],
): Promise<void> => {
  const sent = () => received().filter(({ path }) => path === `/${me.name}`);
  try {
    for (const listener of me.listeners) {
      const { owed } = listener;
      if (owed === undefined || !listener.isOwn) continue;
      await expect
        .poll(() => listener.received().includes(owed), { message: `${listener.what} reports a run` })
        .toBe(true);
      tally.reported += 1;
    }
    await expect.poll(() => sent().length).toBeGreaterThanOrEqual(me.deliveries);
    tally.listened += me.listeners.length;
    tally.delivered += sent().length;
    for (const { what, received } of me.listeners)
      expect([what, traces.filter((trace) => received().includes(trace))]).toEqual([what, []]);
    for (const { body } of sent())
      expect(["a webhook", traces.filter((trace) => body.includes(trace))]).toEqual(["a webhook", []]);
  } finally {
    for (const listener of me.listeners) listener.close();
  }
};
