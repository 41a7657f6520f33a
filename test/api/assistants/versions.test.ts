import { afterAll, beforeAll, expect, test } from "vitest";
import { startAssistants } from "../../helpers/parts.ts";

let server: Awaited<ReturnType<typeof startAssistants>>;
beforeAll(async () => {
  server = await startAssistants();
});
afterAll(async () => {
  await server.close();
});

const create = async (body: object = {}) => {
  const answer = await server.client.post("/assistants").send({ graph_id: "agent", name: "Ann", ...body });
  return answer.body;
};
const patch = async (id: string, body: object) => {
  const answer = await server.client.patch(`/assistants/${id}`).send(body);
  expect(answer.status).toBe(200);
  return answer.body;
};
const versionsOf = async (id: string, body: object = {}) => {
  const answer = await server.client.post(`/assistants/${id}/versions`).send(body);
  expect(answer.status).toBe(200);
  return answer.body as { version: number; context: object; graph_id: string }[];
};

test("an update creates the next version and activates it", async () => {
  const first = await create({ context: { a: 1 } });
  const second = await patch(first.assistant_id, { context: { a: 2 } });
  expect(second).toMatchObject({ version: 2, context: { a: 2 }, created_at: first.created_at });
  expect(Date.parse(second.updated_at)).toBeGreaterThanOrEqual(Date.parse(first.updated_at));
  expect((await server.client.get(`/assistants/${first.assistant_id}`)).body).toEqual(second);
});

test("context and config are replaced as a whole: omitted keys are absent", async () => {
  const { assistant_id } = await create({
    context: { model_name: "a", system_prompt: "b" },
    config: { tags: ["x"], configurable: { k: 1 } },
  });
  const second = await patch(assistant_id, { context: { model_name: "c" }, config: { recursion_limit: 5 } });
  expect(second).toMatchObject({ context: { model_name: "c" }, config: { recursion_limit: 5 } });
  expect(second.context).not.toHaveProperty("system_prompt");
  expect(Object.keys(second.config)).toEqual(["recursion_limit"]);
});

test("a body without context and config creates a version without them", async () => {
  const { assistant_id } = await create({ context: { a: 1 }, config: { tags: ["x"] } });
  expect(await patch(assistant_id, { name: "Bob" })).toMatchObject({ name: "Bob", context: {}, config: {} });
});

test("name, description and graph stay unless given; metadata is merged key by key", async () => {
  const { assistant_id } = await create({ description: "d", metadata: { a: 1, b: { c: 1 } } });
  const second = await patch(assistant_id, { context: {}, metadata: { b: { d: 2 }, e: null } });
  expect(second).toMatchObject({ name: "Ann", description: "d", graph_id: "agent" });
  expect(second.metadata).toEqual({ a: 1, b: { d: 2 }, e: null });
  const third = await patch(assistant_id, { graph_id: "two-step", name: "Bob", description: "" });
  expect(third).toMatchObject({ version: 3, graph_id: "two-step", name: "Bob", description: "" });
});

test("an update to an unknown graph is refused and creates no version", async () => {
  const { assistant_id } = await create();
  const answer = await server.client.patch(`/assistants/${assistant_id}`).send({ graph_id: "nope" });
  expect(answer.status).toBe(404);
  expect(answer.body.detail).toBe("Graph 'nope' not found.");
  expect(await versionsOf(assistant_id)).toHaveLength(1);
});

test("an update without a body is refused, since it would empty the context", async () => {
  const { assistant_id } = await create({ context: { a: 1 } });
  const answer = await server.client.patch(`/assistants/${assistant_id}`);
  expect(answer.status).toBe(422);
  expect(answer.body.detail).toBe("The body is required.");
});

test("a chosen version restores every field, and the other versions stay", async () => {
  const first = await create({
    description: "one",
    context: { a: 1 },
    config: { tags: ["one"] },
    metadata: { v: 1 },
  });
  const id = first.assistant_id;
  await patch(id, {
    graph_id: "two-step",
    name: "Two",
    description: "two",
    context: { b: 2 },
    config: { tags: ["two"] },
    metadata: { v: 2 },
  });
  const back = await server.client.post(`/assistants/${id}/latest`).send({ version: 1 });
  expect(back.status).toBe(200);
  expect(back.body).toEqual({ ...first, updated_at: expect.any(String) });
  expect((await server.client.get(`/assistants/${id}`)).body).toEqual(back.body);
  expect((await versionsOf(id)).map(({ version }) => version)).toEqual([2, 1]);
});

test("after a return to an older version, the next update is numbered after the highest version", async () => {
  const { assistant_id } = await create();
  await patch(assistant_id, { context: { v: 2 } });
  await patch(assistant_id, { context: { v: 3 } });
  await server.client.post(`/assistants/${assistant_id}/latest`).send({ version: 1 });
  expect(await patch(assistant_id, { context: { v: 4 } })).toMatchObject({ version: 4, context: { v: 4 } });
  expect((await versionsOf(assistant_id)).map(({ version }) => version)).toEqual([4, 3, 2, 1]);
});

test("the version may also be a query parameter", async () => {
  const { assistant_id } = await create();
  await patch(assistant_id, { context: { v: 2 } });
  const answer = await server.client.post(`/assistants/${assistant_id}/latest?version=1`);
  expect(answer.body).toMatchObject({ version: 1, context: {} });
});

test.each([99, 0, -1, 3_000_000_000, Number.MAX_SAFE_INTEGER])(
  "a version that does not exist causes a 404: %d",
  async (version) => {
    const { assistant_id } = await create();
    const answer = await server.client.post(`/assistants/${assistant_id}/latest`).send({ version });
    expect(answer.status).toBe(404);
    expect(answer.body.detail).toBe(`Assistant '${assistant_id}' has no version ${version}.`);
  },
);

test.each([
  [{}, "'version' is missing: send the number of an existing version."],
  [{ version: "1" }, "'version': must be an integer, not a string."],
  [{ version: 1.5 }, "'version': must be an integer, not a number."],
  [{ version: true }, "'version': must be an integer, not a boolean."],
])("a version of the wrong type causes a 422: %j", async (body, detail) => {
  const { assistant_id } = await create();
  const answer = await server.client.post(`/assistants/${assistant_id}/latest`).send(body);
  expect(answer.body).toEqual({ detail });
  expect(answer.status).toBe(422);
});

test("concurrent updates get distinct numbers without gaps, and the last one is active", async () => {
  const { assistant_id } = await create();
  const made = await Promise.all(
    Array.from({ length: 20 }, (_, writer) => patch(assistant_id, { context: { writer } })),
  );
  expect(made.map(({ version }) => version).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 2),
  );
  const { body } = await server.client.get(`/assistants/${assistant_id}`);
  expect(body.version).toBe(21);
  const versions = await versionsOf(assistant_id, { limit: 100 });
  expect(versions).toHaveLength(21);
  for (const one of made) {
    expect(versions.find(({ version }) => version === one.version)?.context).toEqual(one.context);
  }
});

test("concurrent updates and a deletion leave no part of an assistant", async () => {
  const { assistant_id } = await create();
  const answers = await Promise.all([
    ...Array.from({ length: 8 }, () =>
      server.client.patch(`/assistants/${assistant_id}`).send({ context: {} }),
    ),
    server.client.delete(`/assistants/${assistant_id}`),
    ...Array.from({ length: 8 }, () =>
      server.client.patch(`/assistants/${assistant_id}`).send({ context: {} }),
    ),
  ]);
  expect(answers.every(({ status }) => [200, 204, 404].includes(status))).toBe(true);
  expect((await server.client.get(`/assistants/${assistant_id}`)).status).toBe(404);
  const left = await server.database.query(
    "select from threadloom.assistant_versions where assistant_id = $1",
    [assistant_id],
  );
  expect(left).toHaveLength(0);
});

test("versions are listed newest first, in pages, filtered by metadata", async () => {
  const { assistant_id } = await create({ metadata: { round: 1 } });
  for (const round of [2, 3, 4]) await patch(assistant_id, { context: { round }, metadata: { round } });
  const page = await server.client.post(`/assistants/${assistant_id}/versions`).send({ limit: 2, offset: 1 });
  expect(page.body.map(({ version }: { version: number }) => version)).toEqual([3, 2]);
  expect(page.headers["x-pagination-total"]).toBe("4");
  expect(page.headers["x-pagination-next"]).toBe("3");
  const filtered = await server.client
    .post(`/assistants/${assistant_id}/versions`)
    .send({ metadata: { round: 2 } });
  expect(filtered.body).toHaveLength(1);
  expect(filtered.body[0]).toEqual({
    assistant_id,
    version: 2,
    graph_id: "agent",
    name: "Ann",
    description: null,
    config: {},
    context: { round: 2 },
    metadata: { round: 2 },
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  expect(await versionsOf(assistant_id, { metadata: { round: 9 } })).toEqual([]);
});
