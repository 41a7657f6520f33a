import type { ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { directory } from "../../access/open/directory.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";
import { ask, WITH_TASKS } from "./clients.ts";

/** Calls whose caller loses access or leaves while the run executes in the process that answers. */

/** Longer than each test takes: a call that ends before was ended by the server. */
const LONG_MS = 300_000;
const KEY = "an-operators-key";

let server: TestServer;
onServer(
  {
    graphConfigFile: fileURLToPath(new URL("../../access/open/langgraph.json", import.meta.url)),
    apiKeys: [KEY],
    accessCheckSeconds: 1,
    jobsPerWorker: 50,
  },
  (opened) => {
    server = opened.server;
  },
);
beforeEach(() => directory.expired.clear());

let count = 2_000;
const tokenOf = (name: string): string => `${name}-${(count += 1)}`;
const by = (token: string) => ({ authorization: `Bearer ${token}` });

const aCall = (threadId: string) => ({
  name: "sleep",
  arguments: { milliseconds: LONG_MS, messages: [], thread_id: threadId },
});
const statusOf = async (threadId: string): Promise<string | undefined> => {
  const [run] = await query<{ status: string }>(
    server,
    "select status from threadloom.runs where thread_id = $1",
    [threadId],
  );
  return run?.status;
};
const works = async (threadId: string): Promise<void> => {
  await eventually("the run works", async () => (await statusOf(threadId)) === "running");
};
const shown = (token: string): number => directory.shown.get(token) ?? 0;

describe.each([
  ["without progress", {}],
  ["with progress", { progressToken: "p" }],
])("a waiting call %s", (_how, _meta) => {
  it("ends with an error when its token expires, and its run goes on", async () => {
    const [token, threadId] = [tokenOf("alice"), newId()];
    const call = ask(server.url, "tools/call", { ...aCall(threadId), _meta }, { headers: by(token) });
    await works(threadId);
    directory.expired.add(token);
    const { message } = await call;
    expect(message).toMatchObject({ error: { message: "The token has expired." } });
    expect(await statusOf(threadId)).toBe("running");
  });

  it("ends with an error when its thread is given to another owner", async () => {
    const [token, threadId] = [tokenOf("bob"), newId()];
    const call = ask(server.url, "tools/call", { ...aCall(threadId), _meta }, { headers: by(token) });
    await works(threadId);
    const given = await server.client
      .patch(`/threads/${threadId}`)
      .set("x-api-key", KEY)
      .send({ metadata: { owner: "carol" } });
    expect(given.status).toBe(200);
    expect((await call).message.error?.message).toMatch(/^Run '.*' not found\.$/);
    expect(await statusOf(threadId)).toBe("running");
  });
});

describe("access is checked no longer", () => {
  /** Rounds of another caller show that rounds of this one would have come. */
  const isCheckedNoLonger = async (token: string): Promise<void> => {
    const [other, threadId, leave] = [tokenOf("dora"), newId(), new AbortController()];
    const options = { headers: by(other), signal: leave.signal };
    const call = ask(server.url, "tools/call", aCall(threadId), options);
    call.catch(() => undefined);
    onTestFinished(() => leave.abort());
    await works(threadId);
    const [before, first] = [shown(token), shown(other)];
    await eventually("three rounds", () => shown(other) >= first + 3);
    expect(shown(token)).toBe(before);
  };

  it("once the handle of a task is answered", async () => {
    const [token, threadId] = [tokenOf("erin"), newId()];
    const options = { headers: by(token), capabilities: WITH_TASKS };
    const { message } = await ask(server.url, "tools/call", aCall(threadId), options);
    expect(message.result).toMatchObject({ resultType: "task", status: "working" });
    await isCheckedNoLonger(token);
    expect(await statusOf(threadId)).toBe("running");
  });

  it("once a client of an older revision has left", async () => {
    const [token, threadId, leave] = [tokenOf("fred"), newId(), new AbortController()];
    const answers: ServerResponse[] = [];
    const note = (_request: unknown, answer: ServerResponse): void => void answers.push(answer);
    server.app.server.on("request", note);
    onTestFinished(() => void server.app.server.off("request", note));
    const call = fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: {
        ...by(token),
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: aCall(threadId) }),
      signal: leave.signal,
    }).then((answer) => answer.text());
    await works(threadId);
    await eventually("its access is checked", () => shown(token) >= 2);
    leave.abort();
    await expect(call).rejects.toThrow();
    await eventually("the server has noticed", () => answers.every(({ closed }) => closed));
    await isCheckedNoLonger(token);
    expect(await statusOf(threadId)).toBe("running");
  });
});

it("none of this is a fault of the server", () => {
  expect(server.lines.filter((line) => /"level":"?(?:50|error)/.test(line))).toEqual([]);
});
