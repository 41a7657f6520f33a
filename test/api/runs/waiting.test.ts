import pg from "pg";
import { describe, expect, test } from "vitest";
import { saying, textsOf, type Api, type Result } from "../../helpers/api.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onTwoServers } from "../../helpers/servers.ts";
import { waitingStatements } from "../../helpers/locks.ts";

const FAILS = { assistant_id: "failing", input: { ...saying("go"), reason: "out of luck" } };

let server: TestServer;
let api: Api;
let other: Api;
onTwoServers((servers) => ({ server, api, other } = servers));

const places = [
  ["the server that executes the run", () => api],
  ["another server", () => other],
] as const;

describe.each(places)("waiting on %s", (_, place) => {
  test("wait answers with the final values, and names the run", async () => {
    const threadId = await api.aThread();
    const { status, headers, body } = await place().post<Result>(`/threads/${threadId}/runs/wait`, {
      assistant_id: "two-step",
      input: saying("hello"),
    });
    expect(status).toBe(200);
    expect(body.messages).toMatchObject([
      { type: "human", content: "hello" },
      { type: "ai", content: "first" },
      { type: "ai", content: "second" },
    ]);
    expect(Object.keys(body)).toEqual(["messages"]);
    const [run] = await api.runs(threadId);
    expect(headers.get("content-location")).toBe(`/threads/${threadId}/runs/${run?.run_id}`);
    expect(headers.get("location")).toBe(`/threads/${threadId}/runs/${run?.run_id}/join`);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle", values: body });
  });

  test("threadless wait answers with the final values, and names the run", async () => {
    const { status, headers, body } = await place().post<Result>("/runs/wait", {
      assistant_id: "two-step",
      input: saying("hello"),
    });
    expect(status).toBe(200);
    expect(body.__error__).toBeUndefined();
    expect(textsOf(body.messages)).toEqual(["hello", "first", "second"]);
    expect(headers.get("content-location")).toMatch(/^\/threads\/[0-9a-f-]{36}\/runs\/[0-9a-f-]{36}$/);
  });

  test("join answers with the final values of a running run, and of an ended one", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, {
      assistant_id: "sleep",
      input: { ...saying("hello"), milliseconds: 300 },
    });
    const early = await place().join(threadId, run.run_id);
    expect(textsOf(early.messages)).toEqual(["hello", "Slept for 300 ms."]);
    expect(await place().join(threadId, run.run_id)).toEqual(early);
    expect(await place().run(threadId, run.run_id)).toMatchObject({ status: "success" });
  });

  test("a failure is answered as __error__, by wait, threadless wait, and join before and after", async () => {
    const failure = { __error__: { error: "Error", message: "out of luck" } };
    const threadId = await api.aThread();
    expect((await place().post(`/threads/${threadId}/runs/wait`, FAILS)).body).toEqual(failure);
    expect((await place().post("/runs/wait", FAILS)).body).toEqual(failure);
    const run = await api.aRun(threadId, FAILS);
    expect(await place().join(threadId, run.run_id)).toEqual(failure);
    expect(await place().join(threadId, run.run_id)).toEqual(failure);
    expect(await api.run(threadId, run.run_id)).toMatchObject({ status: "error" });
    expect(await api.thread(threadId)).toMatchObject({ status: "error", error: failure.__error__ });
  });

  test("an interrupt is answered as __interrupt__ beside the values", async () => {
    const threadId = await api.aThread();
    const body = { assistant_id: "approval", input: saying("a refund") };
    const waited = (await place().post<Result>(`/threads/${threadId}/runs/wait`, body)).body;
    expect(waited).toMatchObject({
      status: "drafted",
      messages: [{ content: "a refund" }],
      __interrupt__: [{ id: expect.any(String), value: { question: "Send this draft?" } }],
    });
    const [run] = await api.runs(threadId);
    expect(await place().join(threadId, run?.run_id ?? "")).toEqual(waited);
    const threadless = (await place().post<Result>("/runs/wait", body)).body;
    expect(threadless.__interrupt__).toMatchObject([{ value: { question: "Send this draft?" } }]);
  });

  test("a run's answer comes from its own graph while a run of another graph waits behind it, and after that", async () => {
    const threadId = await api.aThread();
    const drafting = { assistant_id: "approval", input: saying("a refund") };
    const drafted = await api.aFinishedRun(threadId, drafting);
    const [draft] = await api.runs(threadId);
    const later = { assistant_id: "counter", input: saying("more"), after_seconds: 3_600 };
    const waiting = await api.aRun(threadId, later);
    const join = () => place().join(threadId, draft?.run_id ?? "");
    expect(await join()).toEqual(drafted);
    expect((await api.thread(threadId)).values).toMatchObject({ status: "drafted" });
    await api.cancel(threadId, waiting.run_id, "wait=1");

    const counted = await api.aFinishedRun(threadId, { assistant_id: "counter", input: saying("more") });
    expect(counted).toMatchObject({ count: 1 });
    const { __interrupt__: _, ...values } = drafted; // the thread no longer waits for this question
    expect(await join()).toEqual(values);
    const [count] = await api.runs(threadId);
    expect(await place().join(threadId, count?.run_id ?? "")).toEqual(counted);
  });

  test("a cancelled run is answered with its current values", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, {
      assistant_id: "sleep",
      input: { ...saying("kept"), milliseconds: 600_000 },
    });
    await api.untilRunIs(threadId, run.run_id, "running");
    const joined = place().join(threadId, run.run_id);
    await place().cancel(threadId, run.run_id, "wait=0");
    expect(textsOf((await joined).messages)).toEqual(["kept"]);
  });
});

test("a run without input on a new thread fails with a clear error", async () => {
  const threadId = await api.aThread();
  const result = await api.aFinishedRun(threadId, { assistant_id: "two-step" });
  expect(result.__error__).toMatchObject({ message: expect.stringContaining("input") });
});

test("the thread's state contains the results of a failed run's earlier steps", async () => {
  for (let round = 0; round < 10; round += 1) {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, FAILS);
    const state = await api.state(threadId);
    expect(textsOf(state.values.messages)).toEqual(["go", "prepared"]);
    expect(state.next).toEqual(["fail"]);
  }
});

test("long waits send white space to keep the connection open, and the answer is valid JSON", async () => {
  const held = (label: string) => ({ assistant_id: "gate", input: { label } });
  const labels = ["waited for", "threadless", "joined"] as const;
  const joined = await api.aRun(await api.aThread(), held("joined"));
  const doomed = await api.aRun(await api.aThread(), held("doomed"));
  const ask = (at: Api, path: string, body?: object) =>
    fetch(`${at.url}${path}`, {
      ...(body && {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
  // They begin with white space, because no run has ended.
  const answers = await Promise.all([
    ask(api, `/threads/${await api.aThread()}/runs/wait`, held("waited for")),
    ask(other, "/runs/wait", held("threadless")),
    ask(other, `/threads/${joined.thread_id}/runs/${joined.run_id}/join`),
    ask(api, `/threads/${doomed.thread_id}/runs/${doomed.run_id}/join`),
  ]);
  for (const label of labels) {
    await eventually(`${label} is at its gate`, () => isAtGate(label));
    openGate(label);
  }
  await api.cancel(doomed.thread_id, doomed.run_id, "wait=1&action=rollback");
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  for (const [index, text] of texts.entries()) {
    expect(answers[index]?.status).toBe(200);
    expect(text).toMatch(/^\s+\{/);
    expect(JSON.parse(text)).toMatchObject(
      index < labels.length ? { done: [labels[index]] } : { __error__: { error: "RunRolledBack" } },
    );
  }
});

describe("of callers that wait for a run that starts in an hour", () => {
  const LEAVING = 4;
  const LOOKS = 3;

  /** The requests that wait because the table is locked. */
  const looks = async (): Promise<string[]> => {
    const texts = await waitingStatements((text) => query(server, text));
    return texts.filter(
      (text) => /from \S*runs/.test(text) && /run_id = \$2::uuid and .*thread_id = \$1::uuid/s.test(text),
    );
  };

  test("only the connected ones poll for its end, and they do not read its input", async () => {
    const threadId = await api.aThread();
    const body = { assistant_id: "two-step", input: saying("later"), after_seconds: 3_600 };
    const { run_id: runId } = await api.aRun(threadId, body);
    const place = `${server.url}/threads/${threadId}/runs`;
    const leave = new AbortController();
    const leaving = Array.from({ length: LEAVING }, () =>
      fetch(`${place}/${runId}/join`, { signal: leave.signal }).catch(() => undefined),
    );
    const staying = api.join(threadId, runId);
    const holder = new pg.Client({ connectionString: server.connectionString });
    await holder.connect();
    const hold = () => holder.query("begin; lock table threadloom.runs in access exclusive mode");
    try {
      await hold();
      await eventually("all look", async () => (await looks()).length === LEAVING + 1);
      leave.abort();
      await Promise.all(leaving);
      await holder.query("commit");
      // Each caller would poll once between two polls of the remaining one. The test does not decide when the server notices a disconnect,
      // nor how long polls of new requests take.
      let looksAlone = 0;
      await eventually("only the remaining caller polls, repeatedly", async () => {
        await hold();
        await eventually("the remaining caller polls", async () => (await looks()).length > 0);
        const [first = "", ...others] = await looks();
        await holder.query("commit");
        looksAlone = others.length === 0 && !first.includes("kwargs") ? looksAlone + 1 : 0;
        return looksAlone === LOOKS;
      });
    } finally {
      await holder.end();
    }
    await api.cancel(threadId, runId);
    await staying;
  });
});
