import { Client, type Assistant } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAssistants } from "../../helpers/parts.ts";

let server: Awaited<ReturnType<typeof startAssistants>>;
let client: Client;
beforeAll(async () => {
  server = await startAssistants({ apiKeys: ["the-key"] });
  client = new Client({ apiUrl: server.url, apiKey: "the-key", callerOptions: { maxRetries: 0 } });
});
afterAll(async () => {
  await server.close();
});

test("the official client creates, changes and deletes an assistant", async () => {
  const { assistants } = client;
  const made = await assistants.create({
    graphId: "two-step",
    name: "Ann",
    context: { model: "a" },
    config: { configurable: { k: 1 } },
    metadata: { team: "blue" },
  });
  expect(made).toMatchObject({ graph_id: "two-step", version: 1, context: { model: "a" } });
  const again = await assistants.create({
    graphId: "two-step",
    assistantId: made.assistant_id,
    ifExists: "do_nothing",
  });
  expect(again).toEqual(made);
  await expect(
    assistants.create({ graphId: "two-step", assistantId: made.assistant_id }),
  ).rejects.toMatchObject({
    status: 409,
  });

  const changed = await assistants.update(made.assistant_id, {
    context: { model: "b" },
    metadata: { round: 2 },
  });
  expect(changed).toMatchObject({ version: 2, config: {}, metadata: { team: "blue", round: 2 } });
  const versions = await assistants.getVersions(made.assistant_id);
  expect(versions.map(({ version }) => version)).toEqual([2, 1]);
  expect(await assistants.setLatest(made.assistant_id, 1)).toMatchObject({
    version: 1,
    context: { model: "a" },
  });

  expect(await assistants.count({ metadata: { team: "blue" } })).toBe(1);
  expect(await assistants.delete(made.assistant_id)).toBeUndefined();
  await expect(assistants.get(made.assistant_id)).rejects.toMatchObject({ status: 404 });
});

test("the official client reads a graph by its id", async () => {
  const { assistants } = client;
  const drawing = await assistants.getGraph("two-step", { xray: true });
  expect(drawing.edges.length).toBeGreaterThan(1);
  for (const edge of drawing.edges) {
    // The Python client builds its edge from these keys and fails on any other.
    for (const key of Object.keys(edge)) expect(["source", "target", "data", "conditional"]).toContain(key);
  }
  expect(await assistants.getSchemas("two-step")).toMatchObject({ graph_id: "two-step" });
  expect(await assistants.getSubgraphs("two-step", { recurse: true })).toEqual({});
  expect((await assistants.get("two-step")).metadata).toMatchObject({ created_by: "system" });
});

test("the official client pages through all assistants", async () => {
  const found: Assistant[] = [];
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const page: { assistants: Assistant[]; next: string | null } = await client.assistants.search({
      limit: 5,
      offset,
      sortBy: "name",
      sortOrder: "asc",
      metadata: { created_by: "system" },
      includePagination: true,
    });
    found.push(...page.assistants);
    offset = page.next === null ? undefined : Number(page.next);
  }
  expect(found.map(({ graph_id }) => graph_id).sort()).toEqual([...server.graphs.ids].sort());
});

test("without a key the official client gets an error that asks for one, and does not retry", async () => {
  const stranger = new Client({ apiUrl: server.url, apiKey: "wrong", callerOptions: { maxRetries: 3 } });
  await expect(stranger.assistants.search()).rejects.toMatchObject({ status: 403 });
});
