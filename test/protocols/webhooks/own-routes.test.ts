import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../src/platform/lib/json.ts";
import { apiOf, saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { startReceiver } from "./receiver.ts";

const CALLERS = "canary-5b1e-callers";
const OPERATORS = "canary-e07d-operators";

const APP = `${fileURLToPath(new URL("../../server/custom-app/apps/app.ts", import.meta.url))}:app`;

const withServer = async (
  options: TestServerOptions,
  work: (server: TestServer) => Promise<void>,
): Promise<void> => {
  const server = await startTestServer(options);
  try {
    await work(server);
  } finally {
    await server.close();
  }
};

test("a caller who names a path of this server can't use a key from the configured headers", async () => {
  const receiver = await startReceiver();
  const options = {
    apiKeys: [CALLERS, OPERATORS],
    projectKeys: {
      webhooks: { url: { disable_loopback: false }, headers: { "x-api-key": "${{ env.LG_WEBHOOK_KEY }}" } },
    },
    environment: { LG_WEBHOOK_KEY: OPERATORS },
  };
  await withServer(options, async (server) => {
    const createRun = async (webhook: string): Promise<string> => {
      const answer = await fetch(`${server.url}/runs`, {
        method: "POST",
        headers: { "x-api-key": CALLERS, "content-type": "application/json" },
        body: JSON.stringify({ assistant_id: "counter", input: saying("hello"), webhook }),
      });
      return ((await answer.json()) as { run_id: string }).run_id;
    };
    await createRun(`${receiver.url}/hook`);
    await eventually("another receiver gets the headers", () => receiver.received.length === 1);
    expect(receiver.received[0]?.headers["x-api-key"]).toBe(OPERATORS);

    const runId = await createRun("/threads");
    const status = await eventually("the path was requested", async () => {
      const [row] = await query<{ last_status: number | null }>(
        server,
        "select last_status from threadloom.deliveries where run_id = $1",
        [runId],
      );
      return row?.last_status ?? undefined;
    });
    expect(status).toBe(401);
  }).finally(() => receiver.close());
});

describe("with an access check in front of the server", () => {
  const behind = { host: "127.0.0.1", unsafeNoAuth: true };
  const aRun = async (server: TestServer, webhook: string) => {
    const api = apiOf(server);
    const run = { assistant_id: "counter", input: saying("hello"), webhook };
    return await api.post<{ run_id: string; detail: string }>(`/threads/${await api.aThread()}/runs`, run);
  };
  const statusOf = (server: TestServer, runId: string) =>
    eventually("the path was requested", async () => {
      const [row] = await query<{ last_status: number | null }>(
        server,
        "select last_status from threadloom.deliveries where run_id = $1",
        [runId],
      );
      return row?.last_status ?? undefined;
    });
  /** The path by which a user would write to the state of another user's thread. */
  const stateOf = async (server: TestServer) => {
    const api = apiOf(server);
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "counter", input: saying("theirs") });
    return { threadId, path: `/threads/${threadId}/state` };
  };

  test("a webhook can't name a route of the server, because its request would bypass the check", async () => {
    await withServer(behind, async (server) => {
      const { path } = await stateOf(server);
      const { status, body } = await aRun(server, path);
      expect([status, body.detail]).toEqual([422, expect.stringContaining("must be an absolute address")]);
    });
  });

  test("a webhook may name routes of the project's own application, but none of the API", async () => {
    await withServer({ ...behind, projectKeys: { http: { app: APP } } }, async (server) => {
      const { threadId, path } = await stateOf(server);
      const before = await apiOf(server).state(threadId);
      for (const spelling of [path, `/assistants/..${path}/?a=b`, path.replace("threads", "%74hreads")]) {
        const { body } = await aRun(server, spelling);
        expect(await statusOf(server, body.run_id)).toBe(403);
      }
      expect(await apiOf(server).state(threadId)).toEqual(before);
      const { body } = await aRun(server, "/hook");
      expect(await statusOf(server, body.run_id)).toBe(200);
    });
  });

  test("a webhook may name all routes if loopback was allowed", async () => {
    const projectKeys = { webhooks: { url: { disable_loopback: false } } };
    await withServer({ ...behind, projectKeys }, async (server) => {
      const { body } = await aRun(server, "/threads/search");
      expect(await statusOf(server, body.run_id)).not.toBe(403);
    });
  });
});

test("the start warns of secret headers that may be sent anywhere, and of no others", async () => {
  const warnings = async (webhooks: JsonObject): Promise<string[]> => {
    const found: string[] = [];
    const options = { projectKeys: { webhooks }, environment: { LG_WEBHOOK_TOKEN: "the token" } };
    await withServer(options, async (server) => {
      found.push(...server.lines.filter((line) => line.includes("allowed_domains")));
    });
    return found;
  };
  const secret = { "x-token": "${{ env.LG_WEBHOOK_TOKEN }}" };
  expect(await warnings({ headers: secret })).toHaveLength(1);
  expect(await warnings({ headers: secret, url: { allowed_domains: ["hooks.example.com"] } })).toEqual([]);
  expect(await warnings({ headers: { "x-source": "us" } })).toEqual([]);
});
