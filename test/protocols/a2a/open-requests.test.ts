import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { directory } from "../../access/open/directory.ts";

/** Requests that are open while their caller leaves or loses access. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("../../access/open/langgraph.json", import.meta.url)),
    accessCheckSeconds: 1,
  });
});
afterAll(() => server.close());
beforeEach(() => {
  directory.expired.clear();
  directory.barred.clear();
});

const LONG_MS = 30_000;
let count = 1_000;

const ask = async (method: string, token: string, signal?: AbortSignal): Promise<[string, Response]> => {
  const contextId = newId();
  const parts = [{ data: { milliseconds: LONG_MS } }];
  const message = { messageId: "m", role: "ROLE_USER", contextId, parts };
  const answer = await fetch(`${server.url}/a2a/sleep`, {
    method: "POST",
    headers: {
      ...{ authorization: `Bearer ${token}`, "content-type": "application/json", "a2a-version": "1.0" },
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { message } }),
    ...(signal === undefined ? {} : { signal }),
  });
  return [contextId, answer];
};
const statusOf = async (contextId: string): Promise<string | undefined> => {
  const [run] = await query<{ status: string }>(
    server,
    "select status from threadloom.runs where thread_id = $1",
    [contextId],
  );
  return run?.status;
};

test("a stream is cut when its caller loses access, and its task goes on", async () => {
  const token = `alice-${(count += 1)}`;
  const [contextId, answer] = await ask("SendStreamingMessage", token);
  const reader = answer.body!.getReader();
  const first = new TextDecoder().decode((await reader.read()).value);
  expect(first).toContain('"task":');
  directory.expired.add(token);
  await expect(
    (async () => {
      while (!(await reader.read()).done);
    })(),
  ).rejects.toThrow();
  expect(await statusOf(contextId)).toBe("running");
});

test("a waiting request ends with an error when its caller loses access, and its task goes on", async () => {
  const token = `alice-${(count += 1)}`;
  const [contextId, answer] = await ask("SendMessage", token);
  directory.expired.add(token);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({
    jsonrpc: "2.0",
    id: 1,
    error: { code: -32603, message: "The token has expired." },
  });
  expect(await statusOf(contextId)).toBe("running");
});

test.each(["SendMessage", "SendStreamingMessage"])(
  "a client that leaves during %s cancels nothing, and leaves nothing open",
  async (method) => {
    const token = `alice-${(count += 1)}`;
    const leave = new AbortController();
    const [contextId, answer] = await ask(method, token, leave.signal);
    await eventually("the task works", async () => (await statusOf(contextId)) === "running");
    leave.abort();
    await answer.text().catch(() => undefined);
    const connections = async (): Promise<number> =>
      await new Promise((resolve) => server.app.server.getConnections((_error, open) => resolve(open)));
    await eventually("the connection is closed", async () => (await connections()) <= 1);
    expect(await statusOf(contextId)).toBe("running");
    expect(server.lines.filter((line) => line.includes('"level":50'))).toEqual([]);
  },
);
