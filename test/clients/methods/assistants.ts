import { expect } from "vitest";
import { refusalOf, type Calls } from "./calls.ts";
import type { Client } from "@langchain/langgraph-sdk";

const AGENT_ID = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
const anAssistant = (client: Client, mark?: string) =>
  client.assistants.create({
    graphId: "agent",
    name: "tour",
    context: { system_prompt: "one" },
    metadata: { mark },
  });

export const ASSISTANT_CALLS: Calls = {
  "assistants.get": async ({ assistants }) => {
    expect(await assistants.get("agent")).toMatchObject({ assistant_id: AGENT_ID, graph_id: "agent" });
  },
  "assistants.getGraph": async ({ assistants }) => {
    const { nodes, edges } = await assistants.getGraph("research", { xray: true });
    expect(nodes.map(({ id }) => id)).toContain("__start__");
    expect(edges.length).toBeGreaterThan(1);
  },
  "assistants.getSchemas": async ({ assistants }) => {
    expect(await assistants.getSchemas(AGENT_ID)).toMatchObject({
      graph_id: "agent",
      input_schema: { properties: { messages: {} } },
      context_schema: { properties: { system_prompt: {} } },
    });
  },
  "assistants.getSubgraphs": async ({ assistants }) => {
    expect(Object.keys(await assistants.getSubgraphs("research", { recurse: true }))).toEqual([
      "investigate",
    ]);
    expect(Object.keys(await assistants.getSubgraphs("research", { namespace: "investigate" }))).toEqual([
      "investigate",
    ]);
  },
  "assistants.create": async (client) => {
    const created = await anAssistant(client);
    expect(created).toMatchObject({ graph_id: "agent", name: "tour", version: 1 });
    const again = { graphId: "agent", assistantId: created.assistant_id };
    expect(await refusalOf(client.assistants.create(again))).toBe(409);
    expect(await client.assistants.create({ ...again, ifExists: "do_nothing" })).toEqual(created);
  },
  "assistants.update": async (client) => {
    const { assistant_id: id } = await anAssistant(client);
    const updated = await client.assistants.update(id, { context: { system_prompt: "two" } });
    expect(updated).toMatchObject({ version: 2, context: { system_prompt: "two" } });
  },
  "assistants.delete": async (client) => {
    const { assistant_id: id } = await anAssistant(client);
    await client.assistants.delete(id);
    expect(await refusalOf(client.assistants.get(id))).toBe(404);
  },
  "assistants.search": async (client) => {
    const mark = crypto.randomUUID();
    const ids = [await anAssistant(client, mark), await anAssistant(client, mark)].map(
      ({ assistant_id }) => assistant_id,
    );
    const query = { metadata: { mark }, sortBy: "created_at", sortOrder: "asc" } as const;
    const found = await client.assistants.search({ ...query, select: ["assistant_id"] });
    expect(found).toEqual(ids.map((id) => ({ assistant_id: id })));
    const page = await client.assistants.search({ ...query, limit: 1, includePagination: true });
    expect(page).toMatchObject({ assistants: [{ assistant_id: ids[0] }], next: "1" });
  },
  "assistants.count": async (client) => {
    const mark = crypto.randomUUID();
    await anAssistant(client, mark);
    expect(await client.assistants.count({ metadata: { mark } })).toBe(1);
  },
  "assistants.getVersions": async (client) => {
    const { assistant_id: id } = await anAssistant(client);
    await client.assistants.update(id, { name: "second" });
    const versions = await client.assistants.getVersions(id, { limit: 5 });
    expect(versions.map(({ version }) => version)).toEqual([2, 1]);
  },
  "assistants.setLatest": async (client) => {
    const { assistant_id: id } = await anAssistant(client);
    await client.assistants.update(id, { context: {} });
    expect(await client.assistants.setLatest(id, 1)).toMatchObject({
      version: 1,
      context: { system_prompt: "one" },
    });
  },
};
