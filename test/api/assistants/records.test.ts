import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createAuthorize } from "../../../src/access/authorize.ts";
import { THE_SERVER } from "../../../src/access/caller.ts";
import { createAssistantService } from "../../../src/api/assistants/service.ts";
import type { JsonObject } from "../../../src/platform/lib/json.ts";
import { startAssistants } from "../../helpers/parts.ts";

let server: Awaited<ReturnType<typeof startAssistants>>;
beforeAll(async () => {
  server = await startAssistants();
});
afterAll(async () => {
  await server.close();
});

const AGENT_ID = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
const ISO_WITH_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const create = async (body: object = {}) => {
  const answer = await server.client.post("/assistants").send({ graph_id: "agent", name: "Ann", ...body });
  expect(answer.status).toBe(200);
  return answer.body;
};

/** The service of a server with other graphs, on the same database. */
const deployed = (graphIds: string[]) =>
  createAssistantService({
    database: server.database,
    authorize: createAuthorize(),
    graphs: {
      ...server.graphs,
      ids: graphIds,
      has: (id) => graphIds.includes(id),
      description: (id) => `Graph ${id}`,
    },
    deleteThreads: async () => undefined,
  });

test("a new assistant has every field of the contract, and is at version 1", async () => {
  const { client } = server;
  const answer = await client.post("/assistants").send({
    graph_id: "agent",
    name: "Support",
    description: "Answers customers",
    context: { model_name: "gpt", system_prompt: "Be kind", tools: ["search"] },
    config: { recursion_limit: 10, tags: ["a"], configurable: { user: "u" } },
    metadata: { team: "blue" },
  });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({
    assistant_id: expect.stringMatching(UUID_V7),
    graph_id: "agent",
    name: "Support",
    description: "Answers customers",
    context: { model_name: "gpt", system_prompt: "Be kind", tools: ["search"] },
    config: { recursion_limit: 10, tags: ["a"], configurable: { user: "u" } },
    metadata: { team: "blue" },
    version: 1,
    created_at: expect.stringMatching(ISO_WITH_OFFSET),
    updated_at: answer.body.created_at,
  });
  const read = await client.get(`/assistants/${answer.body.assistant_id}`);
  expect(read.body).toEqual(answer.body);
});

test("fields omitted at creation are empty, and the name is Untitled", async () => {
  const answer = await server.client.post("/assistants").send({ graph_id: "agent", unknown_field: 1 });
  expect(answer.body).toMatchObject({
    name: "Untitled",
    description: null,
    config: {},
    context: {},
    metadata: {},
    version: 1,
  });
  expect(answer.body).not.toHaveProperty("unknown_field");
});

test("null counts as omitted", async () => {
  const made = await create({ name: null, config: null, context: null, metadata: null, assistant_id: null });
  expect(made).toMatchObject({ name: "Untitled", config: {}, context: {}, metadata: {} });
  const withNulls = await create({ config: { configurable: null, tags: null, callbacks: null } });
  expect(withNulls.config).toEqual({ callbacks: null });
});

test("config and context may both be given and are stored separately", async () => {
  const made = await create({ config: { configurable: { a: 1 } }, context: { b: 2 } });
  expect(made).toMatchObject({ config: { configurable: { a: 1 } }, context: { b: 2 } });
});

test("an unknown graph causes a 404 that names it, and nothing is stored", async () => {
  const assistant_id = randomUUID();
  const answer = await server.client.post("/assistants").send({ graph_id: "nope", assistant_id });
  expect(answer.status).toBe(404);
  expect(answer.body).toEqual({ detail: "Graph 'nope' not found." });
  expect((await server.client.get(`/assistants/${assistant_id}`)).status).toBe(404);
});

test.each([
  [{}, "'graph_id': is required."],
  [{ graph_id: 5 }, "'graph_id': must be a string, not an integer."],
  [{ graph_id: "agent", name: ["x"] }, "'name': must be a string, not a list."],
  [{ graph_id: "agent", context: [] }, "'context': must be an object, not a list."],
  [{ graph_id: "agent", metadata: "x" }, "'metadata': must be an object, not a string."],
  [{ graph_id: "agent", assistant_id: "x" }, "'assistant_id': must be a UUID."],
  [{ graph_id: "agent", if_exists: "maybe" }, "'if_exists': must be one of 'raise', 'do_nothing'."],
  [
    { graph_id: "agent", config: { configurable: 5 } },
    "'config.configurable': must be an object, not an integer.",
  ],
  [
    { graph_id: "agent", config: { recursion_limit: "9" } },
    "'config.recursion_limit': must be an integer, not a string.",
  ],
  [{ graph_id: "agent", config: { tags: [1] } }, "'config.tags.0': must be a string, not an integer."],
])("an invalid body causes a 422 whose sentence names the field: %j", async (body, detail) => {
  const answer = await server.client.post("/assistants").send(body);
  expect(answer.body).toEqual({ detail });
  expect(answer.status).toBe(422);
});

test("a duplicate id causes a 409, or returns the existing assistant if requested", async () => {
  const first = await create({ context: { a: 1 } });
  const again = { graph_id: "agent", assistant_id: first.assistant_id, context: { a: 2 } };
  const refused = await server.client.post("/assistants").send(again);
  expect(refused.status).toBe(409);
  expect(refused.body.detail).toBe(`Assistant '${first.assistant_id}' already exists.`);
  const kept = await server.client.post("/assistants").send({ ...again, if_exists: "do_nothing" });
  expect(kept.status).toBe(200);
  expect(kept.body).toEqual(first);
});

test("ids of any UUID version and in any case are accepted", async () => {
  const assistant_id = "ABCDEF01-0000-0000-0000-000000000001";
  await create({ assistant_id });
  const read = await server.client.get(`/assistants/${assistant_id}`);
  expect(read.body.assistant_id).toBe(assistant_id.toLowerCase());
});

test("every graph has a system assistant from the start, under an id that clients can compute", async () => {
  const answer = await server.client.get("/assistants/agent");
  expect(answer.body).toMatchObject({
    assistant_id: AGENT_ID,
    graph_id: "agent",
    name: "agent",
    version: 1,
    metadata: { created_by: "system" },
  });
  expect((await server.client.get(`/assistants/${AGENT_ID}`)).body).toEqual(answer.body);
  const all = await server.client
    .post("/assistants/search")
    .send({ metadata: { created_by: "system" }, limit: 100, sort_by: "name", sort_order: "asc" });
  expect(all.body.map((assistant: { graph_id: string }) => assistant.graph_id).sort()).toEqual(
    [...server.graphs.ids].sort(),
  );
});

test("replicas that start at once create each system assistant once, and keep a user's version of it", async () => {
  await server.database.query("delete from threadloom.assistants where assistant_id = $1", [AGENT_ID]);
  const boots = Array.from({ length: 8 }, (_, boot) =>
    server.assistants.ensureOfGraphs(
      THE_SERVER,
      boot % 2 === 0 ? server.graphs.ids : [...server.graphs.ids].reverse(),
    ),
  );
  await Promise.all(boots);
  const versions = await server.client.post(`/assistants/${AGENT_ID}/versions`);
  expect(versions.body).toHaveLength(1);

  const changed = await server.client.patch("/assistants/agent").send({ context: { mine: true } });
  expect(changed.body).toMatchObject({
    version: 2,
    context: { mine: true },
    metadata: { created_by: "system" },
  });
  await server.assistants.ensureOfGraphs(THE_SERVER, server.graphs.ids);
  expect((await server.client.get("/assistants/agent")).body).toEqual(changed.body);
});

describe("the configuration of a graph's assistant in langgraph.json", () => {
  const GRAPH = "told";
  const start = (said: {
    config?: JsonObject;
    context?: JsonObject;
    description?: string;
    starters?: string[];
  }) =>
    createAssistantService({
      database: server.database,
      authorize: createAuthorize(),
      graphs: { ...server.graphs, ids: [GRAPH], has: () => true, description: () => said.description },
      deleteThreads: async () => undefined,
    }).ensureOfGraphs(THE_SERVER, [GRAPH], { [GRAPH]: said });
  const systemAssistant = async () => (await server.client.get(`/assistants/${GRAPH}`)).body as object;
  afterEach(() => server.database.query("delete from threadloom.assistants where graph_id = $1", [GRAPH]));

  const FIRST = {
    config: { tags: ["a"], recursion_limit: 9 },
    context: { tone: "warm" },
    description: "One",
  };

  test("creates the assistant, and does not change it again while it stays the same", async () => {
    expect(await start(FIRST)).toEqual([]);
    const made = await systemAssistant();
    expect(made).toMatchObject({ ...FIRST, version: 1, metadata: { created_by: "system" } });
    expect(made).not.toHaveProperty("defaults");
    expect(await Promise.all([start(FIRST), start(FIRST)])).toEqual([[], []]);
    expect(await systemAssistant()).toEqual(made);
  });

  test.each([
    { ...FIRST, config: {} },
    { ...FIRST, context: { tone: "cold" } },
    { ...FIRST, description: undefined },
    { ...FIRST, config: { recursion_limit: 9, tags: ["a"] } },
  ])("creates a new version when it changes, once for all replicas: %j", async (said) => {
    await start(FIRST);
    const starts = await Promise.all(Array.from({ length: 4 }, () => start(said)));
    expect(starts.flat()).toEqual([GRAPH]);
    const changed = await systemAssistant();
    expect(changed).toMatchObject({
      config: said.config,
      context: said.context,
      description: said.description ?? null,
      version: 2,
    });
    expect(JSON.stringify(changed)).toContain(`"config":${JSON.stringify(said.config)}`);
    const { body: versions } = await server.client.post(`/assistants/${GRAPH}/versions`);
    expect((versions as { version: number; context: object }[]).map(({ version }) => version)).toEqual([
      2, 1,
    ]);
    expect(versions[1]).toMatchObject(FIRST);
  });

  test("keeps questions to begin with in the metadata, beside what users have added", async () => {
    await start({ ...FIRST, starters: ["What is new?"] });
    expect(await systemAssistant()).toMatchObject({
      version: 1,
      metadata: { created_by: "system", starters: ["What is new?"] },
    });
    await server.client.patch(`/assistants/${GRAPH}`).send({ metadata: { team: "a" } });
    expect(await start({ ...FIRST, starters: ["What else?"] })).toEqual([GRAPH]);
    expect(await systemAssistant()).toMatchObject({
      metadata: { created_by: "system", team: "a", starters: ["What else?"] },
    });
    expect(await start(FIRST)).toEqual([GRAPH]);
    expect(await systemAssistant()).toMatchObject({ metadata: { created_by: "system", team: "a" } });
    expect(await systemAssistant()).not.toHaveProperty("metadata.starters");
  });

  test("leaves questions that a user has set", async () => {
    await start(FIRST);
    await server.client.patch(`/assistants/${GRAPH}`).send({ metadata: { starters: ["Mine?"] } });
    await start({ ...FIRST, description: "Two" });
    expect(await systemAssistant()).toMatchObject({ description: "Two", metadata: { starters: ["Mine?"] } });
  });

  test("does not overwrite a user's version until it changes", async () => {
    await start(FIRST);
    await server.client.patch(`/assistants/${GRAPH}`).send({ context: { tone: "mine" }, name: "Mine" });
    const mine = await systemAssistant();
    expect(await start(FIRST)).toEqual([]);
    expect(await systemAssistant()).toEqual(mine);
    expect(await start({ ...FIRST, context: { tone: "new" } })).toEqual([GRAPH]);
    expect(await systemAssistant()).toMatchObject({ context: { tone: "new" }, name: "Mine", version: 3 });
    await server.client.post(`/assistants/${GRAPH}/latest`).send({ version: 2 });
    expect(await systemAssistant()).toMatchObject({ context: { tone: "mine" } });
  });
});

test("a graph id with a slash or a space is a valid reference, percent-encoded", async () => {
  await deployed(["team/my graph"]).ensureOfGraphs(THE_SERVER, ["team/my graph"]);
  const answer = await server.client.get(`/assistants/${encodeURIComponent("team/my graph")}`);
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ graph_id: "team/my graph", description: "Graph team/my graph" });
});

test.each(["nope", "a/b c", "😀", randomUUID()])(
  "an unknown assistant causes a 404 that names it: %j",
  async (reference) => {
    const path = `/assistants/${encodeURIComponent(reference)}`;
    const { client } = server;
    const answers = await Promise.all([
      client.get(path),
      client.patch(path).send({ context: {} }),
      client.delete(path),
      client.post(`${path}/versions`),
      client.post(`${path}/latest`).send({ version: 1 }),
      client.get(`${path}/graph`),
      client.get(`${path}/schemas`),
      client.get(`${path}/subgraphs`),
      client.get(`${path}/subgraphs/any`),
    ]);
    for (const answer of answers) {
      expect(answer.body).toEqual({ detail: `Assistant '${reference}' not found.` });
      expect(answer.status).toBe(404);
    }
  },
);

test("the drawing, schemas and subgraphs are those of the assistant's graph", async () => {
  const { client } = server;
  const { assistant_id } = await create({ graph_id: "two-step" });
  const drawing = await client.get(`/assistants/${assistant_id}/graph`);
  expect(drawing.status).toBe(200);
  expect(drawing.body.nodes.map((node: { id: string }) => node.id)).toContain("__start__");
  for (const xray of ["true", "false", "1", "0", "True", ""]) {
    expect((await client.get(`/assistants/${assistant_id}/graph?xray=${xray}`)).status).toBe(200);
  }
  for (const xray of ["-1", "x", "1.5"]) {
    const refused = await client.get(`/assistants/${assistant_id}/graph?xray=${xray}`);
    expect(refused.status).toBe(422);
    expect(refused.body.detail).toBe("'xray': must be true, false or a depth of at least 0.");
  }
  const schemas = await client.get(`/assistants/${assistant_id}/schemas`);
  expect(schemas.body).toMatchObject({ graph_id: "two-step", input_schema: { type: "object" } });
  expect(schemas.body).toHaveProperty("context_schema");
  expect((await client.get(`/assistants/${assistant_id}/subgraphs?recurse=true`)).body).toEqual({});
  expect((await client.get(`/assistants/${assistant_id}/subgraphs/nope`)).body).toEqual({});
  expect((await client.get(`/assistants/${assistant_id}/subgraphs?recurse=x`)).status).toBe(422);
});

test("an assistant whose graph is no longer deployed can be read, but not drawn", async () => {
  await deployed(["retired"]).ensureOfGraphs(THE_SERVER, ["retired"]);
  expect((await server.client.get("/assistants/retired")).status).toBe(200);
  const drawing = await server.client.get("/assistants/retired/graph");
  expect(drawing.status).toBe(404);
  expect(drawing.body.detail).toBe("Graph 'retired' not found.");
});

test("deleting removes the assistant and all its versions, once", async () => {
  const { assistant_id } = await create();
  await server.client.patch(`/assistants/${assistant_id}`).send({ context: { a: 1 } });
  const answer = await server.client.delete(`/assistants/${assistant_id}?delete_threads=false`);
  expect(answer.status).toBe(204);
  expect(answer.text).toBe("");
  expect((await server.client.get(`/assistants/${assistant_id}`)).status).toBe(404);
  expect((await server.client.delete(`/assistants/${assistant_id}`)).status).toBe(404);
  const left = await server.database.query(
    "select from threadloom.assistant_versions where assistant_id = $1",
    [assistant_id],
  );
  expect(left).toHaveLength(0);
});

test("the system assistant of a deployed graph can't be deleted, and keeps its threads", async () => {
  const thread = randomUUID();
  await server.database.query(
    "insert into threadloom.threads (thread_id, metadata) values ($1, jsonb_build_object('assistant_id', $2::text))",
    [thread, AGENT_ID],
  );
  for (const reference of ["agent", AGENT_ID, AGENT_ID.toUpperCase()]) {
    const deletion = await server.client.delete(`/assistants/${reference}?delete_threads=true`);
    expect([deletion.status, deletion.body.detail]).toEqual([
      422,
      expect.stringContaining("the graph id 'agent' stands for this assistant"),
    ]);
    const change = await server.client.patch(`/assistants/${reference}`).send({ graph_id: "two-step" });
    expect([change.status, change.body.detail]).toEqual([422, expect.stringMatching(/^'graph_id':/)]);
  }
  expect((await server.client.patch("/assistants/agent").send({ graph_id: "agent" })).status).toBe(200);
  expect((await server.client.get("/assistants/agent")).body).toMatchObject({ graph_id: "agent" });
  expect(
    await server.database.query("select from threadloom.threads where thread_id = $1", [thread]),
  ).toHaveLength(1);
});

test("the system assistant of a graph that is no longer deployed can be deleted", async () => {
  await deployed(["withdrawn"]).ensureOfGraphs(THE_SERVER, ["withdrawn"]);
  expect((await server.client.delete("/assistants/withdrawn")).status).toBe(204);
  expect((await server.client.get("/assistants/withdrawn")).status).toBe(404);
});

test("its threads are deleted only if requested; other assistants' threads always stay", async () => {
  const addThreads = async (assistantId: string, count: number) => {
    await server.database.query(
      `insert into threadloom.threads (thread_id, metadata)
       select gen_random_uuid(), jsonb_build_object('assistant_id', $1::text) from generate_series(1, $2)`,
      [assistantId, count],
    );
  };
  const countThreads = async (assistantId: string) =>
    (
      await server.database.query("select from threadloom.threads where metadata ->> 'assistant_id' = $1", [
        assistantId,
      ])
    ).length;
  const [kept, purged, other] = [await create(), await create(), await create()];
  await addThreads(kept.assistant_id, 3);
  await addThreads(purged.assistant_id, 450); // more than a batch
  await addThreads(other.assistant_id, 3);
  expect((await server.client.delete(`/assistants/${kept.assistant_id}`)).status).toBe(204);
  expect((await server.client.delete(`/assistants/${purged.assistant_id}?delete_threads=true`)).status).toBe(
    204,
  );
  expect(await countThreads(kept.assistant_id)).toBe(3);
  expect(await countThreads(purged.assistant_id)).toBe(0);
  expect(await countThreads(other.assistant_id)).toBe(3);
});
