import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Authorize } from "../../../src/access/authorize.ts";
import { createAuthorize } from "../../../src/access/authorize.ts";
import { forbidden } from "../../../src/platform/domain/errors.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { ownersOnly } from "../../helpers/access.ts";
import { eventually } from "../../helpers/conditions.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** Two callers whose filters show each only its own threads; `hidesAssistants` also hides the assistants. */
const KEYS = { me: "canary-key-me", them: "canary-key-them" };
type Owner = keyof typeof KEYS;
const idOf = (owner: Owner): string => createHash("sha256").update(KEYS[owner]).digest("hex").slice(0, 12);

let hidesAssistants = false;
/** Makes updates of threads and cancels of their runs forbidden. */
let forbidsUpdates = false;
const everybody = createAuthorize();
const authorize: Authorize = async (caller, resource, action, value) => {
  if (forbidsUpdates && action === "update" && caller.kind !== "server") throw forbidden("Not this.");
  return resource === "threads" || hidesAssistants
    ? await ownersOnly(caller, resource, action, value)
    : await everybody(caller, resource, action, value);
};

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: Object.values(KEYS), authorize });
});
afterAll(async () => {
  await server.close();
});
beforeEach(() => {
  hidesAssistants = false;
  forbidsUpdates = false;
});

const send = async (owner: Owner, method: string, path: string, body?: unknown) => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { "x-api-key": KEYS[owner], "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    text,
    body: /^\s*[{[]/.test(text) ? JSON.parse(text) : undefined,
  };
};
const aThread = async (owner: Owner): Promise<string> => {
  const { body } = await send(owner, "POST", "/threads", { metadata: { owner: idOf(owner) } });
  return body.thread_id;
};
const input = { assistant_id: "agent", input: { messages: [{ role: "user", content: "hi" }] } };
const aRun = async (owner: Owner, threadId: string): Promise<string> => {
  const { body } = await send(owner, "POST", `/threads/${threadId}/runs`, { ...input, after_seconds: 3_600 });
  return body.run_id;
};

describe("a run on another user's thread", () => {
  let threadId: string;
  let runId: string;
  beforeAll(async () => {
    threadId = await aThread("them");
    runId = await aRun("them", threadId);
  });

  test.each<[string, string, unknown?]>([
    ["GET", "/threads/:thread/runs/:run"],
    ["GET", "/threads/:thread/runs/:run/join"],
    ["GET", "/threads/:thread/runs/:run/stream"],
    ["GET", "/runs/:run/stream"],
    ["DELETE", "/threads/:thread/runs/:run"],
    ["POST", "/threads/:thread/runs/:run/cancel"],
    ["POST", "/runs/cancel", { run_ids: [":run"] }],
    ["GET", "/threads/:thread/runs"],
    ["POST", "/threads/:thread/runs", input],
    ["POST", "/threads/:thread/runs/wait", input],
    ["POST", "/threads/:thread/runs/stream", input],
    ["POST", "/runs", { ...input, thread_id: ":thread" }],
    ["POST", "/runs/batch", [{ ...input, thread_id: ":thread" }]],
  ])("%s %s answers as if it did not exist", async (method, path, body) => {
    const of = (text: string, ids: { thread: string; run: string }): string =>
      text.replaceAll(":thread", ids.thread).replaceAll(":run", ids.run);
    const ask = async (ids: { thread: string; run: string }) =>
      await send(
        "me",
        method,
        of(path, ids),
        body === undefined ? undefined : JSON.parse(of(JSON.stringify(body), ids)),
      );
    const nowhere = { thread: newId(), run: newId() };
    const hidden = await ask({ thread: threadId, run: runId });
    const missing = await ask(nowhere);
    expect(hidden.status).toBe(404);
    expect(missing.status).toBe(404);
    expect(hidden.text).toBe(
      missing.text.replaceAll(nowhere.thread, threadId).replaceAll(nowhere.run, runId),
    );
    expect((await send("them", "GET", `/threads/${threadId}/runs/${runId}`)).body).toMatchObject({
      status: "pending",
    });
  });

  test("is not found by a search, and not affected by cancelling all", async () => {
    const mine = await aThread("me");
    const myRun = await aRun("me", mine);
    const found = await send("me", "POST", "/runs/search", {});
    expect(found.body.map((run: { run_id: string }) => run.run_id)).toEqual([myRun]);
    expect((await send("me", "POST", "/runs/cancel", { status: "all" })).status).toBe(204);
    expect((await send("me", "GET", `/threads/${mine}/runs/${myRun}`)).body.status).toBe("interrupted");
    expect((await send("them", "GET", `/threads/${threadId}/runs/${runId}`)).body.status).toBe("pending");
  });

  test.each<[string, string, unknown]>([
    ["POST", "/threads/:thread/runs", { ...input, if_not_exists: "create" }],
    ["POST", "/runs/batch", [{ ...input, thread_id: ":thread", if_not_exists: "create" }]],
  ])("%s %s that would create its thread answers that the id is taken", async (method, path, body) => {
    const asked = JSON.parse(JSON.stringify(body).replaceAll(":thread", threadId));
    const answer = await send("me", method, path.replace(":thread", threadId), asked);
    expect([answer.status, answer.body]).toEqual([409, { detail: `Thread '${threadId}' already exists.` }]);
  });
});

test("a checkpoint of a hidden thread is unknown, like a missing one", async () => {
  const threadId = await aThread("them");
  await send("them", "POST", `/threads/${threadId}/runs/wait`, input);
  const state = await send("them", "GET", `/threads/${threadId}/state`);
  const { checkpoint_id: theirs } = state.body.checkpoint;
  const from = async (checkpointId: string) =>
    await send("me", "POST", `/threads/${threadId}/runs/wait`, { ...input, checkpoint_id: checkpointId });
  const unknown = newId();
  const [hidden, missing] = [await from(theirs), await from(unknown)];
  expect(hidden.status).toBe(404);
  expect(hidden.text).toBe(missing.text.replaceAll(unknown, theirs));
});

test("a caller who may create a run but not cancel it may let it end with the connection", async () => {
  const threadId = await aThread("me");
  forbidsUpdates = true;
  const leave = new AbortController();
  const waiting = fetch(`${server.url}/threads/${threadId}/runs/wait`, {
    method: "POST",
    headers: { "x-api-key": KEYS.me, "content-type": "application/json" },
    body: JSON.stringify({ ...input, after_seconds: 3_600, on_disconnect: "cancel" }),
    signal: leave.signal,
  }).catch(() => undefined);
  const runsOf = async () => (await send("me", "GET", `/threads/${threadId}/runs`)).body;
  await eventually("it is there", async () => (await runsOf()).length === 1);
  const [{ run_id: runId }] = await runsOf();
  expect((await send("me", "POST", `/threads/${threadId}/runs/${runId}/cancel`)).status).toBe(403);
  leave.abort();
  await waiting;
  await eventually("it is ended", async () => (await runsOf())[0].status === "interrupted");
});

test("a caller who may see a thread can run on it, wait, join and read its runs", async () => {
  const threadId = await aThread("me");
  const waited = await send("me", "POST", `/threads/${threadId}/runs/wait`, input);
  expect([waited.status, waited.body.__error__]).toEqual([200, undefined]);
  const listed = await send("me", "GET", `/threads/${threadId}/runs`);
  const [{ run_id: runId }] = listed.body;
  expect((await send("me", "GET", `/threads/${threadId}/runs/${runId}/join`)).body).toEqual(waited.body);
  expect((await send("me", "DELETE", `/threads/${threadId}/runs/${runId}`)).status).toBe(204);
});

test.each([
  ["on a thread", "/threads/:thread/runs/wait"],
  ["without one", "/runs/wait"],
])("a run of an assistant that its caller may not read is not created %s", async (_where, path) => {
  const threadId = await aThread("me");
  hidesAssistants = true;
  const answer = await send("me", "POST", path.replace(":thread", threadId), input);
  expect(answer.status).toBe(404);
  const unknown = newId();
  const missing = await send("me", "POST", path.replace(":thread", threadId), {
    ...input,
    assistant_id: unknown,
  });
  expect(answer.text).toBe(missing.text.replaceAll(unknown, "agent"));
  expect((await send("me", "GET", `/threads/${threadId}/runs`)).body).toEqual([]);
});
