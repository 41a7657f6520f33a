import { describe, expect, it } from "vitest";
import type { GraphSchemas } from "../../../src/graphs/json-schemas.ts";
import { inputSchemaOf } from "../../../src/protocols/mcp/tools/schemas.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { Api, ThreadRecord } from "../../helpers/api.ts";
import { saying } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { onServer } from "../../helpers/servers.ts";
import { ask, newClient, oldClient } from "./clients.ts";

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const clients = async () => [await newClient(server.url), await oldClient(server.url)] as const;

interface ToolRecord {
  name: string;
  description?: string;
}

const listed = async (
  cursor?: string,
): Promise<{ tools: ToolRecord[]; nextCursor?: string; ttlMs: number }> => {
  const { message } = await ask(server.url, "tools/list", cursor === undefined ? {} : { cursor });
  return message.result as never;
};

const anAssistant = async (fields: object): Promise<string> => {
  const { body } = await api.post<{ assistant_id: string }>("/assistants", {
    graph_id: "two-step",
    ...fields,
  });
  return body.assistant_id;
};

const threadCount = async (): Promise<number> => (await api.post<number>("/threads/count", {})).body;

describe("the list of tools", () => {
  it("holds the graphs, with the schemas of their input and output, for both official clients", async () => {
    for (const client of await clients()) {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name).sort()).toEqual([...server.graphs].sort());
      const approval = tools.find(({ name }) => name === "approval");
      expect(Object.keys(approval?.inputSchema.properties ?? {}).sort()).toEqual([
        "draft",
        "messages",
        "resume",
        "status",
        "thread_id",
      ]);
      expect(approval?.outputSchema).toMatchObject({ type: "object", properties: { status: {} } });
    }
  });

  it("leaves the fields of a graph's input as they are, also those of the server's names", () => {
    const input = { type: "object", properties: { thread_id: { type: "number" } }, required: ["thread_id"] };
    const schemas = { graph_id: "own", input_schema: input } as unknown as GraphSchemas;
    expect(inputSchemaOf(schemas)).toEqual({
      ...input,
      properties: { thread_id: { type: "number" }, resume: expect.objectContaining({}) },
    });
  });

  it("names assistants, and gives those of one name the end of their id", async () => {
    const first = await anAssistant({ name: "Größe & more!", description: "Measures." });
    const second = await anAssistant({ name: "Größe & more!" });
    const third = await anAssistant({ name: "agent" });
    const nameless = await anAssistant({ name: "¿?" });
    const { tools } = await listed();
    const names = tools.map(({ name }) => name);
    expect(names.slice(server.graphs.length)).toEqual([
      "Gr_e_more",
      `Gr_e_more_${second.slice(-8)}`,
      `agent_${third.slice(-8)}`,
      "assistant",
    ]);
    expect(tools.find(({ name }) => name === "Gr_e_more")?.description).toBe("Measures.");
    for (const id of [first, second, third, nameless]) await api.remove(`/assistants/${id}`);
  });

  it("is read in pages, each tool once and in a fixed order", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 60; count += 1) ids.push(await anAssistant({ name: `number ${count}` }));
    const seen: string[] = [];
    let pages = 0;
    let cursor: string | undefined;
    do {
      const page = await listed(cursor);
      seen.push(...page.tools.map(({ name }) => name));
      cursor = page.nextCursor;
      pages += 1;
      // Deleted tools of the pages before must not shift the next page.
      if (pages === 1) await api.remove(`/assistants/${ids[0]!}`);
    } while (cursor !== undefined);
    expect(pages).toBe(2);
    expect(seen.slice(server.graphs.length)).toEqual(ids.map((_id, count) => `number_${count}`));
    for (const id of ids) await api.remove(`/assistants/${id}`);
    expect((await ask(server.url, "tools/list", { cursor: "nowhere" })).message.error?.code).toBe(-32_602);
  });

  it("lets clients keep it for a while", async () => {
    expect(await listed()).toMatchObject({ ttlMs: 10_000, cacheScope: "private" });
  });
});

describe("a call", () => {
  it("answers the model's text, the state of the graph and the run, to both official clients", async () => {
    const before = await threadCount();
    for (const client of await clients()) {
      await client.listTools(); // From now on the client checks structured content.
      const result = await client.callTool({ name: "two-step", arguments: saying("hello") });
      expect(result).toMatchObject({
        content: [{ type: "text", text: "second" }],
        structuredContent: { messages: [{ type: "human" }, { type: "ai" }, { type: "ai" }] },
      });
      expect(Object.keys(result._meta ?? {})).toContain("run_id");
      expect(Object.keys(result._meta ?? {})).not.toContain("thread_id");
    }
    expect(await threadCount()).toBe(before);
  });

  it("answers JSON if the graph has no messages", async () => {
    const client = await newClient(server.url);
    const { content, structuredContent } = await client.callTool({
      name: "counter",
      arguments: { count: 3 },
    });
    expect(JSON.parse((content[0] as { text: string }).text)).toEqual(structuredContent);
  });

  it("calls an assistant by its name, and by its name with the end of its id", async () => {
    const id = await anAssistant({ name: "Second step" });
    for (const name of ["Second_step", `Second_step_${id.slice(-8)}`]) {
      const client = await oldClient(server.url);
      const threadId = newId();
      await client.callTool({ name, arguments: { ...saying("hi"), thread_id: threadId } });
      const [run] = await api.runs(threadId);
      expect(run).toMatchObject({ assistant_id: id, metadata: { origin: "mcp" } });
    }
    await api.remove(`/assistants/${id}`);
  });

  it("continues a thread, which it creates", async () => {
    for (const client of await clients()) {
      const threadId = newId();
      const call = async () =>
        await client.callTool({ name: "two-step", arguments: { ...saying("again"), thread_id: threadId } });
      await call();
      const { structuredContent, _meta } = await call();
      expect(_meta).toMatchObject({ thread_id: threadId });
      expect((structuredContent as ThreadRecord["values"])?.messages).toHaveLength(6);
    }
  });

  it("of a graph that fails is a result with its error", async () => {
    for (const client of await clients()) {
      const result = await client.callTool({ name: "failing", arguments: { reason: "out of coffee" } });
      expect(result).toMatchObject({ isError: true, content: [{ text: "Error: out of coffee" }] });
    }
  });

  it("shows a model its own mistakes", async () => {
    const { message } = await ask(server.url, "tools/call", {
      name: "two-step",
      arguments: { ...saying("hi"), thread_id: "mine" },
    });
    expect(message.result).toMatchObject({
      isError: true,
      content: [{ text: "'thread_id' must be a UUID." }],
    });
  });

  it.each(["nothing", "constructor", "__proto__", "x\u0000", "a".repeat(100)])(
    "refuses the unknown tool %j",
    async (name) => {
      const { message } = await ask(
        server.url,
        "tools/call",
        { name, arguments: {} },
        { headers: { "mcp-name": `=?base64?${Buffer.from(name).toString("base64")}?=` } },
      );
      expect(message.error?.code).toBe(-32_602);
    },
  );
});

describe("the transport", () => {
  it("describes the server to a client of the newest revision", async () => {
    const { message } = await ask(server.url, "server/discover");
    expect(message.result).toMatchObject({
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
    });
  });

  it.each(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])(
    "greets a client of revision %s without a session",
    async (protocolVersion) => {
      const { headers, text } = await server.client
        .post("/mcp/")
        .set("accept", "application/json, text/event-stream")
        .send({
          jsonrpc: "2.0",
          id: 1,
          method: "initialize",
          params: { protocolVersion, capabilities: {}, clientInfo: { name: "old", version: "1" } },
        });
      expect(headers["mcp-session-id"]).toBeUndefined();
      expect(text).toContain(`"protocolVersion":"${protocolVersion}"`);
    },
  );

  it("accepts notifications, and neither streams nor sessions", async () => {
    const notified = await server.client
      .post("/mcp")
      .set("accept", "application/json, text/event-stream")
      .send({ jsonrpc: "2.0", method: "notifications/initialized" });
    const opened = await server.client.get("/mcp").set("accept", "text/event-stream");
    const ended = await server.client.delete("/mcp");
    expect([notified.status, opened.status, opened.headers["allow"], ended.status]).toEqual([
      202,
      405,
      "POST",
      404,
    ]);
  });

  it("refuses unknown methods, revisions and headers that contradict the message", async () => {
    const unknown = await ask(server.url, "tools/invent");
    expect([unknown.status, unknown.message.error?.code]).toEqual([404, -32_601]);
    const contradicted = await ask(server.url, "tools/list", {}, { headers: { "mcp-method": "tools/call" } });
    expect([contradicted.status, contradicted.message.error?.code]).toEqual([400, -32_020]);
    const future = await ask(
      server.url,
      "tools/list",
      { _meta: { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } },
      { headers: { "mcp-protocol-version": "2099-01-01" } },
    );
    expect([future.status, future.message.error?.code]).toEqual([400, -32_022]);
  });
});
