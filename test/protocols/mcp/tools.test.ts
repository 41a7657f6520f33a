import { describe, expect, it } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { onServer } from "../../helpers/servers.ts";
import { ask, newClient, oldClient } from "./clients.ts";

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const human = (text: string) => ({ messages: [{ role: "user", content: text }] });

describe("tools", () => {
  it("are the graphs, with the schemas of their input and output, for both official clients", async () => {
    for (const client of [await newClient(server.url), await oldClient(server.url)]) {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name).sort()).toEqual([...server.graphs].sort());
      const approval = tools.find(({ name }) => name === "approval");
      expect(Object.keys(approval?.inputSchema.properties ?? {})).toEqual(
        expect.arrayContaining(["messages", "draft", "thread_id", "resume"]),
      );
      expect(approval?.outputSchema).toMatchObject({ properties: { status: { type: "string" } } });
    }
  });

  it("answer the text of the model, the state of the graph and where the run is, to both official clients", async () => {
    for (const client of [await newClient(server.url), await oldClient(server.url)]) {
      await client.listTools();
      const result = await client.callTool({ name: "two-step", arguments: human("hello") });
      expect(result).toMatchObject({
        content: [{ type: "text", text: "second" }],
        structuredContent: { messages: [{ type: "human" }, { type: "ai" }, { type: "ai" }] },
        _meta: { run_id: expect.any(String) },
      });
    }
  });
});
