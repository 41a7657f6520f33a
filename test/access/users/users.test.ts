import { Client } from "@langchain/langgraph-sdk";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

const KEY = "canary-6a1e-operators";
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("langgraph.json", import.meta.url)),
    apiKeys: [KEY],
  });
});
afterAll(async () => {
  await server.close();
});

const clientOf = (name: string): Client =>
  new Client({ apiUrl: server.url, apiKey: null, defaultHeaders: { authorization: `Bearer ${name}-token` } });
const send = async (token: string | undefined, method: string, path: string, body?: unknown) => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text };
};

describe("authentication", () => {
  test("a refused request gets the handler's own text and headers", async () => {
    const { status, headers, text } = await send(undefined, "GET", "/openapi.json");
    expect([status, headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="test"']);
    expect(JSON.parse(text)).toEqual({ detail: "Show who you are." });
  });

  test("an answer without identity causes a 401, and the log names the missing field", async () => {
    const { status, text } = await send("nobody", "GET", "/openapi.json");
    expect([status, text]).toEqual([401, '{"detail":"The request could not be authenticated."}']);
    expect(
      server.lines.some((line) => line.includes("the 'identity' of the returned user must be a text")),
    ).toBe(true);
  });

  test("any other error of the handler causes a 401 and a log line", async () => {
    const { status, text } = await send("broken", "GET", "/openapi.json?token=canary-of-a-query");
    expect([status, text]).toEqual([401, '{"detail":"The request could not be authenticated."}']);
    const line = server.lines.find((one) => one.includes("threw an error that is no HTTPException"));
    expect(JSON.parse(line ?? "{}")).toMatchObject({ method: "GET", path: "/openapi.json" });
    expect(line).not.toContain("canary-of-a-query");
    expect(line).not.toContain("a canary of the handler");
  });

  test("the queue shows waiting runs of all users, so it requires a key", async () => {
    const { status, text } = await send("alice-token", "GET", "/queue");
    expect([status, JSON.parse(text)]).toEqual([
      403,
      { detail: "The queue of this server shows what everybody has: it needs an API key." },
    ]);
    const answer = await fetch(`${server.url}/queue`, { headers: { "x-api-key": KEY } });
    expect([answer.status, await answer.json()]).toMatchObject([200, { is_complete: true }]);
  });

  test("the server's figures count all users, so they require a key", async () => {
    for (const path of ["/metrics", "/metrics?format=json"]) {
      const { status, text } = await send("alice-token", "GET", path);
      expect([status, JSON.parse(text)]).toEqual([
        403,
        { detail: "The figures of this server count what everybody has: they need an API key." },
      ]);
      const answer = await fetch(`${server.url}${path}`, { headers: { "x-api-key": KEY } });
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("uptime_seconds")]);
    }
  });

  test("probes and preflights need no user, and the operator's key is accepted", async () => {
    expect((await send(undefined, "GET", "/ok")).status).toBe(200);
    expect((await send(undefined, "OPTIONS", "/threads")).status).toBeLessThan(300);
    const answer = await fetch(`${server.url}/openapi.json`, { headers: { "x-api-key": KEY } });
    expect(answer.status).toBe(200);
  });

  test("versions and abilities need no sign-in, and are the same for all callers", async () => {
    const stranger = await send(undefined, "GET", "/info");
    expect(stranger.status).toBe(200);
    expect(JSON.parse(stranger.text)).toMatchObject({ context: "js", flags: { assistants: true } });
    for (const token of ["alice-token", "nobody", "broken"])
      expect(await send(token, "GET", "/info")).toMatchObject({ status: 200, text: stranger.text });
  });

  test("a page that claims to be Studio has no user", async () => {
    const answer = await fetch(`${server.url}/openapi.json`, { headers: { "x-auth-scheme": "langsmith" } });
    expect(answer.status).toBe(401);
  });
});

test("a record belongs to the user who created it, and no other user finds it", async () => {
  const [alice, bob] = [clientOf("alice"), clientOf("bob")];
  const thread = await alice.threads.create({ metadata: { topic: "weather" } });
  expect(thread.metadata).toMatchObject({ topic: "weather", owner: "alice" });
  expect((await alice.threads.get(thread.thread_id)).thread_id).toBe(thread.thread_id);
  await expect(bob.threads.get(thread.thread_id)).rejects.toThrow(/404/);
  const [hidden, missing] = [thread.thread_id, newId()].map((id) =>
    send("bob-token", "GET", `/threads/${id}`),
  );
  expect((await hidden)?.text).toBe((await missing)?.text.replace(/'[^']+'/, `'${thread.thread_id}'`));
  expect(await bob.threads.search()).toEqual([]);
  expect(await alice.threads.count()).toBe(1);
  expect(await bob.threads.count()).toBe(0);
  const again = await send("bob-token", "POST", "/threads", { thread_id: thread.thread_id });
  expect(again.status).toBe(409);
  await expect(bob.runs.wait(thread.thread_id, "agent", { input: {} })).rejects.toThrow(/404/);
});

test("a run's graph finds its user in every place, and no answer or stored record contains the user", async () => {
  const alice = clientOf("alice");
  const forged = { langgraph_auth_user: { identity: "eve" }, langgraph_auth_user_id: "eve" };
  const { thread_id } = await alice.threads.create();
  const values = (await alice.runs.wait(thread_id, "who", {
    input: {},
    config: { configurable: { ...forged, tone: "soft" } },
  })) as { seen: Record<string, unknown>; child: unknown };
  expect(values.seen).toMatchObject({
    user: { identity: "alice", team: "blue", permissions: ["talk"], display_name: "alice" },
    id: "alice",
    permissions: ["talk"],
  });
  expect(values.child).toEqual(values.seen);
  const inContext = (await alice.runs.wait(null, "who", { input: {}, context: forged })) as typeof values;
  expect(inContext.seen).toMatchObject({ id: "alice" });
  expect(JSON.stringify(inContext)).not.toContain("eve");

  const { thread_id: other } = await alice.threads.create();
  const events: unknown[] = [];
  for await (const event of alice.runs.stream(other, "sleep", {
    input: { ms: 1 },
    streamMode: ["values", "updates", "debug", "messages", "events", "tasks", "checkpoints"],
    metadata: { kind: "told" },
  }))
    events.push(event);
  const runs = await alice.runs.list(other);
  const history = await alice.threads.getHistory(other);
  const answers = JSON.stringify([events, runs, history, await alice.threads.get(other)]);
  expect(answers).toContain("told");
  expect(answers).not.toMatch(/langgraph_auth|canary\.example/);
  expect(server.lines.join("\n")).not.toContain("canary.example");
});

test("a run on a thread of its own belongs to its user", async () => {
  const [alice, bob] = [clientOf("alice"), clientOf("bob")];
  const run = await alice.runs.create(null, "agent", { input: {}, onCompletion: "keep" as never });
  expect((await alice.threads.get(run.thread_id)).metadata).toMatchObject({ owner: "alice" });
  await expect(bob.runs.get(run.thread_id, run.run_id)).rejects.toThrow(/404/);
  await expect(bob.threads.getState(run.thread_id)).rejects.toThrow(/404/);
});

test("records that outlive a deleted thread stay with its user, not with a new creator of that thread id", async () => {
  const [alice, bob] = [clientOf("alice"), clientOf("bob")];
  let run = { run_id: "", thread_id: "" };
  const events = alice.runs.stream(null, "agent", {
    input: { messages: [{ role: "user", content: "hers alone" }] },
    webhook: "http://hooks.example/hers",
    onRunCreated: ({ run_id, thread_id = "" }) => (run = { run_id, thread_id }),
  });
  for await (const _ of events);
  const read = async (name: string) =>
    await fetch(`${server.url}/threads/${run.thread_id}/runs/${run.run_id}/stream`, {
      headers: { authorization: `Bearer ${name}-token`, "last-event-id": "-1" },
    });
  expect(await (await read("alice")).text()).toContain("hers alone");
  expect((await read("bob")).status).toBe(404);

  await bob.threads.create({ threadId: run.thread_id });
  expect((await read("bob")).status).toBe(404);
  const delivery = `/webhooks/deliveries/${run.run_id}`;
  expect((await send("bob-token", "GET", delivery)).status).toBe(404);
  expect((await send("bob-token", "POST", `${delivery}/replay`)).status).toBe(404);
  const found = await send("bob-token", "POST", "/webhooks/deliveries/search", { thread_id: run.thread_id });
  expect(found.text).toBe("[]");
});

test("every user may read the assistants of graphs, and no user may change them", async () => {
  const bob = clientOf("bob");
  const found = await bob.assistants.search({ limit: 100 });
  expect(found.map(({ graph_id }) => graph_id).toSorted()).toEqual([
    "agent",
    "approval",
    "made",
    "sleep",
    "who",
  ]);
  const [first] = found;
  await expect(
    bob.assistants.update(first?.assistant_id ?? "", { metadata: { owner: "bob" } }),
  ).rejects.toThrow(/404/);
  const own = await clientOf("alice").assistants.create({ graphId: "agent" });
  expect(own.metadata).toMatchObject({ owner: "alice" });
  await expect(bob.assistants.get(own.assistant_id)).rejects.toThrow(/404/);
  await expect(bob.runs.wait(null, own.assistant_id, { input: {} })).rejects.toThrow(/404/);
});

test("a factory receives its user and the store", async () => {
  const alice = clientOf("alice");
  const values = await alice.runs.wait(null, "made", { input: {} });
  const user = expect.objectContaining({ identity: "alice", team: "blue" }) as object;
  expect(values).toEqual({ user, stored: { user } });
  const byKey = new Client({ apiUrl: server.url, apiKey: KEY });
  expect(await byKey.runs.wait(null, "made", { input: {} })).toEqual({ user: null, stored: { user: null } });
});

test("store items are in the namespace that the handler sets", async () => {
  const [alice, bob] = [clientOf("alice"), clientOf("bob")];
  await alice.store.putItem(["notes"], "k", { text: "hers" });
  expect(await alice.store.getItem(["notes"], "k")).toMatchObject({ namespace: ["alice", "notes"] });
  expect((await send("bob-token", "GET", "/store/items?namespace=notes&key=k")).status).toBe(
    (await send("bob-token", "GET", "/store/items?namespace=notes&key=none")).status,
  );
  expect((await bob.store.searchItems([])).items).toEqual([]);
  expect((await alice.store.searchItems([])).items).toHaveLength(1);
  expect((await bob.store.listNamespaces({})).namespaces).toEqual([]);
  await expect(bob.store.deleteItem(["notes"], "k")).rejects.toThrow(/402|Not here/);
});

test("false is a 403, and nothing is stored", async () => {
  const { status } = await send("plain", "POST", "/threads", {});
  expect(status).toBe(403);
});

test("a cron and its runs belong to the user who created it", async () => {
  const [alice, bob] = [clientOf("alice"), clientOf("bob")];
  const cron = await alice.crons.create("who", { schedule: "0 9 * * *", input: {} });
  expect(cron).toMatchObject({ user_id: "alice", metadata: { owner: "alice" } });
  expect(JSON.stringify(cron)).not.toContain("canary.example");
  expect(await bob.crons.search()).toEqual([]);
  expect((await send("bob-token", "DELETE", `/runs/crons/${cron.cron_id}`)).status).toBe(404);
});

test("a cron on a thread that now belongs to another user can be stopped by its user, but not changed", async () => {
  const alice = clientOf("alice");
  const { thread_id } = await alice.threads.create();
  const cron = await alice.crons.createForThread(thread_id, "who", { schedule: "0 9 * * *", input: {} });
  await new Client({ apiUrl: server.url, apiKey: KEY }).threads.update(thread_id, {
    metadata: { owner: "bob" },
  });
  const path = `/runs/crons/${cron.cron_id}`;
  expect((await send("alice-token", "PATCH", path, { input: { put: "there" } })).status).toBe(404);
  expect((await send("alice-token", "PATCH", path, { enabled: false })).status).toBe(200);
  expect((await send("alice-token", "PATCH", path, { enabled: true })).status).toBe(404);
});

test("/docs says how users authenticate", async () => {
  const answer = await fetch(`${server.url}/openapi.json`, { headers: { "x-api-key": KEY } });
  expect(await answer.json()).toMatchObject({
    components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    security: [{ token: [] }],
  });
  // Open to all, like the page: it contains only what a refusal also says.
  const script = await send(undefined, "GET", "/docs/static/theme/docs-key.js");
  expect(script.text).toContain('{"noun":"token","header":"Authorization","prefix":"Bearer "}');
});
