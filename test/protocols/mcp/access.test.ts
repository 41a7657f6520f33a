import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it, onTestFinished, test } from "vitest";
import { readGraphConfig } from "../../../src/graphs/project/langgraph-json.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { onServer } from "../../helpers/servers.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";
import { ask, newClient, oldClient, WITH_FORMS, WITH_TASKS } from "./clients.ts";

/** The path of a langgraph.json with one graph. */
const aConfig = async (keys: object): Promise<string> => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const path = join(folder.path, "langgraph.json");
  const graph = fileURLToPath(new URL("../../fixtures/two-step.ts", import.meta.url));
  await writeFile(path, JSON.stringify({ graphs: { agent: `${graph}:graph` }, ...keys }));
  return path;
};
const configOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const as = (user: string) => ({ authorization: `Bearer ${user}-token` });

interface Listed {
  tools: { name: string; description: string }[];
}

describe("users of the project's Auth", () => {
  let server: TestServer;
  onServer({ graphConfigFile: configOf("../../access/users/langgraph.json") }, (opened) => {
    server = opened.server;
  });

  const namesFor = async (user: string): Promise<string[]> => {
    const { message } = await ask(server.url, "tools/list", {}, { headers: as(user) });
    return (message.result as unknown as Listed).tools.map(({ name }) => name);
  };

  it("see and call their own assistants only", async () => {
    const { body } = await server.client
      .post("/assistants")
      .set(as("alice"))
      .send({ graph_id: "agent", name: "secret" });
    const { assistant_id: id } = body as { assistant_id: string };
    expect(await namesFor("alice")).toContain("secret");
    expect(await namesFor("bob")).not.toContain("secret");
    for (const name of ["secret", `secret_${id.slice(-8)}`]) {
      const asked = { name, arguments: saying("hi") };
      const own = await (await newClient(server.url, { headers: as("alice") })).callTool(asked);
      expect(own.isError).toBeUndefined();
      const call = (await oldClient(server.url, { headers: as("bob") })).callTool(asked);
      await expect(call).rejects.toMatchObject({ code: -32_602 });
    }
  });

  it("can't take over the name of another's assistant", async () => {
    const create = async (user: string, name: string): Promise<string> => {
      const { body } = await server.client
        .post("/assistants")
        .set(as(user))
        .send({ graph_id: "agent", name });
      return (body as { assistant_id: string }).assistant_id;
    };
    const id = await create("alice", "helper");
    await create("alice", `helper_${id.slice(-8)}`);
    const client = await newClient(server.url, { headers: as("alice") });
    const threadId = newId();
    await client.callTool({
      name: `helper_${id.slice(-8)}`,
      arguments: { ...saying("hi"), thread_id: threadId },
    });
    const { body: runs } = await server.client.get(`/threads/${threadId}/runs`).set(as("alice"));
    expect(runs).toMatchObject([{ assistant_id: id }]);
  });

  it("neither see nor continue the tasks and questions of others", async () => {
    const asAlice = { headers: as("alice"), capabilities: { ...WITH_FORMS, ...WITH_TASKS } };
    const call = { name: "approval", arguments: saying("a refund") };
    const { message } = await ask(server.url, "tools/call", call, asAlice);
    const { taskId } = message.result as { taskId: string };
    const asBob = { ...asAlice, headers: as("bob") };
    for (const [method, params] of [
      ["tasks/get", { taskId }],
      ["tasks/update", { taskId, inputResponses: {} }],
      ["tasks/cancel", { taskId }],
      ["tools/call", { ...call, requestState: `${taskId}.1`, inputResponses: {} }],
    ] as const) {
      const { status, message: refused } = await ask(server.url, method, params, asBob);
      expect([status, refused.error]).toEqual([200, { code: -32_602, message: "There is no such task." }]);
    }
  });

  it("are refused with a status of HTTP, so that clients sign in", async () => {
    const nobody = await ask(server.url, "tools/list", {}, {});
    expect(nobody.status).toBe(401);
    const denied = await ask(
      server.url,
      "tools/call",
      { name: "agent", arguments: saying("hi") },
      { headers: { authorization: "Bearer plain" } },
    );
    expect(denied.status).toBe(403);
  });
});

describe("mcp in langgraph.json", () => {
  let server: TestServer;
  onServer({ graphConfigFile: configOf("langgraph.json"), apiKeys: ["a-key"] }, (opened) => {
    server = opened.server;
  });
  const headers = { "x-api-key": "a-key" };

  it("chooses, names and describes the tools", async () => {
    const { message } = await ask(server.url, "tools/list", {}, { headers });
    const { tools } = message.result as unknown as Listed;
    expect(tools.map(({ name, description }) => [name, description])).toEqual([
      ["write_to_customer", "Writes to a customer."],
      ["two-step", "The agent 'two-step'."],
    ]);
    const client = await newClient(server.url, { headers });
    const { structuredContent } = await client.callTool({
      name: "write_to_customer",
      arguments: saying("a refund"),
    });
    expect(structuredContent).toMatchObject({ status: "drafted" });
    for (const name of ["failing", "approval"]) {
      const unknown = await ask(server.url, "tools/call", { name, arguments: {} }, { headers });
      expect(unknown.message.error?.code).toBe(-32_602);
    }
  });

  it("tells clients without a token who issues tokens", async () => {
    const refused = await server.client.post("/mcp").send({});
    const address = `${server.url}/.well-known/oauth-protected-resource`;
    expect([refused.status, refused.headers["www-authenticate"]]).toEqual([
      401,
      `Bearer resource_metadata="${address}/mcp"`,
    ]);
    for (const url of [address, `${address}/mcp`]) {
      expect(await (await fetch(url)).json()).toEqual({
        resource: `${server.url}/mcp`,
        authorization_servers: ["https://login.example.com"],
        bearer_methods_supported: ["header"],
      });
    }
    const elsewhere = await server.client.post("/threads").send({});
    expect(elsewhere.headers["www-authenticate"]).toBeUndefined();
  });

  it.each([
    [{ tools: [{ assistant: "a b" }] }, "mcp.tools.0: needs a 'name'"],
    [{ tools: [{ assistant: newId() }] }, "mcp.tools.0: needs a 'name'"],
    [{ tools: [{ assistant: "agent", name: "a b" }] }, "mcp.tools.0.name: must have 1 to 64 letters"],
    [{ tools: [{ assistant: "agent" }, { assistant: "b", name: "agent" }] }, "another name"],
    [{ tools: [{ assistant: "agent", title: "x" }] }, "title"],
    [{ authorization_servers: ["login.example.com"] }, "mcp.authorization_servers.0"],
    [{ authorization_servers: ["javascript:alert(1)"] }, "mcp.authorization_servers.0"],
  ])("is refused at the start: %j", async (mcp, message) => {
    await expect(readGraphConfig(await aConfig({ mcp }))).rejects.toThrow(message);
  });
});

describe("a server", () => {
  const started: TestServer[] = [];
  const start = async (...[options]: Parameters<typeof startTestServer>): Promise<TestServer> => {
    const server = await startTestServer(options);
    started.push(server);
    return server;
  };
  afterAll(async () => {
    for (const server of started) await server.close();
  });

  test("without keys refuses pages of other sites", async () => {
    const server = await start({ corsAllowOrigins: ["loopback"] });
    const evil = await ask(server.url, "tools/list", {}, { headers: { origin: "https://evil.example" } });
    expect(evil.status).toBe(403);
    const none = await server.client.get("/.well-known/oauth-protected-resource/mcp");
    expect(none.status).toBe(404);
  });

  test("with http.disable_mcp has no such route", async () => {
    const graphConfigFile = await aConfig({
      http: { disable_mcp: true },
      mcp: { authorization_servers: ["https://login.example.com"] },
    });
    const server = await start({ graphConfigFile });
    for (const path of ["/mcp", "/.well-known/oauth-protected-resource"])
      expect((await server.client.get(path)).status).toBe(404);
    expect((await server.client.post("/mcp").send({})).status).toBe(404);
  });
});
