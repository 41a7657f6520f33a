import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type CryptoKey, type KeyObject } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { startTestServer, type TestServer, type TestServerOptions } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { openStream } from "../helpers/server-sent-events.ts";
import { temporaryFolder, type TemporaryFolder } from "../helpers/temporary-folder.ts";

/** The examples of docs/auth.md, each on a whole server, with the official client. */

const EXAMPLES = fileURLToPath(new URL("../../examples/auth", import.meta.url));
const GRAPHS = fileURLToPath(new URL("../../graphs", import.meta.url));
const FIXTURES = fileURLToPath(new URL("../fixtures", import.meta.url));
const INPUT = { messages: [{ role: "user", content: "hello" }] };

let folder: TemporaryFolder;
let server: TestServer | undefined;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  vi.unstubAllEnvs();
  // The next server reads its environment again.
  vi.resetModules();
});
afterAll(async () => {
  await folder.remove();
});

const start = async (example: string, options: TestServerOptions = {}): Promise<TestServer> => {
  const file = join(folder.path, `${example}.json`);
  const graphs = { agent: `${GRAPHS}/agent.ts:graph`, sleep: `${FIXTURES}/sleep.ts:graph` };
  await writeFile(file, JSON.stringify({ graphs, auth: { path: `${EXAMPLES}/${example}.ts:auth` } }));
  server = await startTestServer({ graphConfigFile: file, ...options });
  return server;
};
const clientOf = (token: string): Client =>
  new Client({
    apiUrl: server?.url ?? "",
    apiKey: null,
    defaultHeaders: token === "" ? {} : { authorization: `Bearer ${token}` },
    callerOptions: { maxRetries: 0 },
  });

test("owner.ts: each user finds only the records they created", async () => {
  await start("owner");
  const [alice, bob] = [clientOf("alice-token"), clientOf("bob-token")];
  const { thread_id } = await alice.threads.create();
  await alice.runs.wait(thread_id, "agent", { input: INPUT });
  expect((await alice.threads.search()).map((thread) => thread.thread_id)).toEqual([thread_id]);
  expect(await bob.threads.search()).toEqual([]);
  await expect(bob.threads.getState(thread_id)).rejects.toThrow(/404/);
  await expect(bob.runs.wait(thread_id, "agent", { input: INPUT })).rejects.toThrow(/404/);
  await alice.store.putItem(["notes"], "one", { text: "hers" });
  expect((await bob.store.searchItems(["notes"])).items).toEqual([]);
  await expect(clientOf("nobody").threads.search()).rejects.toThrow(/401/);
});

test("a thread from before Auth has no owner until a key gives it one", async () => {
  const key = "a-key-of-the-operator-of-32-bytes";
  await start("owner", { apiKeys: [key] });
  const operator = new Client({ apiUrl: server?.url ?? "", apiKey: key });
  const { thread_id } = await operator.threads.create();
  const alice = clientOf("alice-token");
  await expect(alice.threads.get(thread_id)).rejects.toThrow(/404/);
  await operator.threads.update(thread_id, { metadata: { owner: "alice" } });
  expect((await alice.threads.search()).map((thread) => thread.thread_id)).toEqual([thread_id]);
  await expect(clientOf("bob-token").threads.get(thread_id)).rejects.toThrow(/404/);
});

test("team.ts: members share a thread, users who may invite add them, and no other user has access", async () => {
  await start("team");
  const [alice, bob, carol] = ["alice", "bob", "carol"].map((name) => clientOf(`${name}-token`)) as [
    Client,
    Client,
    Client,
  ];
  const { thread_id, metadata } = await alice.threads.create({ metadata: { members: ["bob"] } });
  expect(metadata).toMatchObject({ members: ["alice", "bob"] });
  await bob.runs.wait(thread_id, "agent", { input: INPUT });
  expect((await alice.runs.list(thread_id)).length).toBe(1);
  expect([await bob.threads.count(), await carol.threads.count()]).toEqual([1, 0]);
  await expect(carol.threads.get(thread_id)).rejects.toThrow(/404/);
  await expect(bob.threads.update(thread_id, { metadata: { members: ["carol"] } })).rejects.toThrow(/403/);
  await expect(bob.threads.create({ metadata: { members: ["alice"] } })).rejects.toThrow(/403/);
  await expect(bob.threads.delete(thread_id)).rejects.toThrow(/404/);
  await alice.threads.delete(thread_id);
  const own = await bob.runs.create(null, "agent", { input: INPUT, onCompletion: "keep" as never });
  expect((await bob.threads.get(own.thread_id)).metadata).toMatchObject({ members: ["bob"] });
  await expect(bob.assistants.create({ graphId: "agent" })).rejects.toThrow(/403/);
});

describe("jwt.ts", () => {
  const AUDIENCE = "threadloom";
  const SECRET = "a-secret-of-more-than-thirty-two-bytes";
  const secret = new TextEncoder().encode(SECRET);

  const tokenFor = async (
    subject: string,
    { key = secret, algorithm = "HS256", audience = AUDIENCE, expires = "5m", scope = "" } = {} as {
      key?: Uint8Array | CryptoKey | KeyObject;
      algorithm?: string;
      audience?: string;
      expires?: string | number;
      scope?: string;
    },
  ): Promise<string> =>
    await new SignJWT({ scope })
      .setProtectedHeader({ alg: algorithm })
      .setSubject(subject)
      .setAudience(audience)
      .setExpirationTime(expires)
      .sign(key);

  test("with a secret: accepts its own tokens, and refuses those of others, expired ones, and those for another audience", async () => {
    vi.stubEnv("JWT_AUDIENCE", AUDIENCE);
    vi.stubEnv("JWT_SECRET", SECRET);
    await start("jwt");
    const alice = clientOf(await tokenFor("alice"));
    const { thread_id } = await alice.threads.create();
    expect((await alice.threads.get(thread_id)).metadata).toMatchObject({ owner: "alice" });
    await expect(clientOf(await tokenFor("bob")).threads.get(thread_id)).rejects.toThrow(/404/);
    for (const token of [
      "",
      "no-token",
      await tokenFor("alice", { expires: Math.floor(Date.now() / 1_000) - 10 }),
      await tokenFor("alice", { audience: "another" }),
      await tokenFor("alice", { key: new TextEncoder().encode(SECRET.toUpperCase()) }),
      new UnsecuredJWT({}).setSubject("alice").setAudience(AUDIENCE).setExpirationTime("5m").encode(),
    ])
      await expect(clientOf(token).threads.get(thread_id)).rejects.toThrow(/401/);
    await expect(alice.assistants.create({ graphId: "agent" })).rejects.toThrow(/403/);
    const admin = clientOf(await tokenFor("admin", { scope: "openid admin" }));
    expect((await admin.assistants.create({ graphId: "agent" })).graph_id).toBe("agent");
  });

  test("with a file of keys: accepts tokens that the provider has signed, and refuses those signed with a public key", async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), alg: "ES256" }] });
    const file = join(folder.path, "keys.json");
    await writeFile(file, keys);
    vi.stubEnv("JWT_AUDIENCE", AUDIENCE);
    vi.stubEnv("JWT_KEYS_FILE", file);
    await start("jwt");
    const alice = clientOf(await tokenFor("alice", { key: privateKey, algorithm: "ES256" }));
    expect(await alice.threads.count()).toBe(0);
    const forged = await tokenFor("alice", { key: new TextEncoder().encode(keys) });
    await expect(clientOf(forged).threads.count()).rejects.toThrow(/401/);
  });

  test("an expired token ends its open stream", async () => {
    vi.stubEnv("JWT_AUDIENCE", AUDIENCE);
    vi.stubEnv("JWT_SECRET", SECRET);
    const { url } = await start("jwt", { accessCheckSeconds: 1 });
    const token = await tokenFor("alice", { expires: "3s" });
    const stream = await openStream(`${url}/runs/stream`, {
      headers: { authorization: `Bearer ${token}` },
      body: { assistant_id: "sleep", input: { milliseconds: 30_000 }, stream_mode: ["custom"] },
    });
    let isOver = false;
    void stream.rest().then(() => (isOver = true));
    await eventually("the stream to end", () => isOver);
    expect(stream.seen.at(-1)).toMatchObject({
      event: "error",
      data: { error: "AccessLost", message: "The token has expired." },
    });
  });

  test("a start without an audience, or with a short secret, is refused", async () => {
    vi.stubEnv("JWT_SECRET", SECRET);
    await expect(start("jwt")).rejects.toThrow(/JWT_AUDIENCE/);
    // Another process would load the file again.
    vi.resetModules();
    vi.stubEnv("JWT_AUDIENCE", AUDIENCE);
    vi.stubEnv("JWT_SECRET", "short");
    await expect(start("jwt")).rejects.toThrow(/32 bytes/);
  });
});

describe("jwt-team.ts", () => {
  const SECRET = "a-secret-of-more-than-thirty-two-bytes";
  const as = async (claims: Record<string, unknown>): Promise<Client> =>
    clientOf(
      await new SignJWT(claims)
        .setProtectedHeader({ alg: "HS256" })
        .setSubject("someone")
        .setAudience("threadloom")
        .setExpirationTime("5m")
        .sign(new TextEncoder().encode(SECRET)),
    );

  test("a team shares its records; the role decides who reads, writes, and deletes; no other team sees them", async () => {
    vi.stubEnv("JWT_AUDIENCE", "threadloom");
    vi.stubEnv("JWT_SECRET", SECRET);
    await start("jwt-team");
    const [viewer, member, admin, other] = await Promise.all([
      as({ team: "red", role: "viewer" }),
      as({ team: "red", role: "member" }),
      as({ team: "red", role: "admin" }),
      as({ team: "blue", role: "admin" }),
    ]);
    // A thread always belongs to the caller's own team, whatever metadata a caller sends.
    const { thread_id, metadata } = await member.threads.create({ metadata: { team: "blue" } });
    expect(metadata).toEqual({ team: "red" });
    await member.threads.update(thread_id, { metadata: { team: "blue" } });
    await member.runs.wait(thread_id, "agent", { input: INPUT });
    expect((await viewer.threads.get(thread_id)).metadata).toMatchObject({ team: "red" });
    expect([await viewer.threads.count(), await other.threads.count()]).toEqual([1, 0]);
    await expect(other.threads.getState(thread_id)).rejects.toThrow(/404/);
    await expect(other.threads.delete(thread_id)).rejects.toThrow(/404/);

    await expect(viewer.runs.wait(thread_id, "agent", { input: INPUT })).rejects.toThrow(/403/);
    await expect(viewer.threads.update(thread_id, { metadata: {} })).rejects.toThrow(/403/);
    await expect(member.threads.delete(thread_id)).rejects.toThrow(/403/);
    await expect(member.assistants.create({ graphId: "agent" })).rejects.toThrow(/403/);
    await admin.threads.delete(thread_id);
    expect(await viewer.threads.count()).toBe(0);

    const { assistant_id } = await admin.assistants.create({ graphId: "agent", metadata: { team: "blue" } });
    expect((await viewer.assistants.get(assistant_id)).metadata).toMatchObject({ team: "red" });
    await expect(other.assistants.get(assistant_id)).rejects.toThrow(/404/);
    await expect(other.assistants.update(assistant_id, { name: "ours" })).rejects.toThrow(/404/);
    await expect(other.assistants.delete(assistant_id)).rejects.toThrow(/404/);
    expect((await other.assistants.search()).map((one) => one.assistant_id)).not.toContain(assistant_id);
    expect((await other.assistants.get("agent")).graph_id).toBe("agent");

    await member.store.putItem(["notes"], "one", { text: "red" });
    expect((await viewer.store.getItem(["notes"], "one"))?.value).toEqual({ text: "red" });
    await expect(viewer.store.putItem(["notes"], "two", {})).rejects.toThrow(/403/);
    expect(await other.store.getItem(["notes"], "one")).toBeNull();
    expect((await other.store.searchItems([])).items).toEqual([]);
    expect((await member.store.searchItems([])).items).toHaveLength(1);
  });

  test("a token without a team is refused, and one with an unknown role may do nothing", async () => {
    vi.stubEnv("JWT_AUDIENCE", "threadloom");
    vi.stubEnv("JWT_SECRET", SECRET);
    await start("jwt-team");
    for (const team of [undefined, "", ["red"], { $or: [] }])
      await expect((await as({ team, role: "admin" })).threads.count()).rejects.toThrow(/401/);
    for (const role of [undefined, "owner", "constructor"])
      await expect((await as({ team: "red", role })).threads.count()).rejects.toThrow(/403/);
  });
});
