import { afterAll, beforeAll, expect, test } from "vitest";
import { startAssistants } from "../../helpers/parts.ts";

let server: Awaited<ReturnType<typeof startAssistants>>;
const ids: string[] = [];
beforeAll(async () => {
  server = await startAssistants();
  await server.database.query("delete from threadloom.assistants");
  const assistants = [
    { graph_id: "agent", name: "Alpha", metadata: { team: "blue", tags: ["a", "b"], deep: { x: 1, y: 2 } } },
    { graph_id: "agent", name: "beta 100%", metadata: { team: "red" } },
    { graph_id: "two-step", name: "Gamma_ray", metadata: { team: "blue" } },
    { graph_id: "two-step", name: "delta", metadata: {} },
    {
      graph_id: "sleep",
      name: "Epsilon",
      metadata: { team: "green", "it's": "quoted'; drop table assistants; --" },
    },
  ];
  for (const body of assistants)
    ids.push((await server.client.post("/assistants").send(body)).body.assistant_id);
});
afterAll(async () => {
  await server.close();
});

const search = async (body?: object) => {
  const request = server.client.post("/assistants/search");
  const answer = await (body === undefined ? request : request.send(body));
  expect(answer.status).toBe(200);
  return answer;
};
const namesOf = async (body?: object): Promise<string[]> =>
  (await search(body)).body.map(({ name }: { name: string }) => name);
const count = async (body?: object): Promise<unknown> => {
  const request = server.client.post("/assistants/count");
  return (await (body === undefined ? request : request.send(body))).body;
};

test("without a body, a search returns everything, the newest first", async () => {
  expect(await namesOf()).toEqual(["Epsilon", "delta", "Gamma_ray", "beta 100%", "Alpha"]);
  expect(await count()).toBe(5);
});

test.each([
  [{ graph_id: "agent" }, ["beta 100%", "Alpha"]],
  [{ graph_id: "nope" }, []],
  [{ name: "LPH" }, ["Alpha"]],
  [{ name: "%" }, ["beta 100%"]],
  [{ name: "_" }, ["Gamma_ray"]],
  [{ metadata: { team: "blue" } }, ["Gamma_ray", "Alpha"]],
  [{ metadata: { deep: { x: 1 } } }, ["Alpha"]],
  [{ metadata: { tags: ["b"] } }, ["Alpha"]],
  [{ metadata: {} }, ["Epsilon", "delta", "Gamma_ray", "beta 100%", "Alpha"]],
  [{ metadata: { "it's": "quoted'; drop table assistants; --" } }, ["Epsilon"]],
  [{ metadata: { team: "blue" }, graph_id: "two-step", name: "gamma" }, ["Gamma_ray"]],
  [{ graph_id: null, name: null, metadata: null }, ["Epsilon", "delta", "Gamma_ray", "beta 100%", "Alpha"]],
])("searches and counts apply the filters: %j", async (filter, expected) => {
  expect(await namesOf(filter)).toEqual(expected);
  expect(await count(filter)).toBe(expected.length);
});

test("sorts by every field of the contract, in both directions", async () => {
  expect(await namesOf({ sort_by: "created_at", sort_order: "asc" })).toEqual([
    "Alpha",
    "beta 100%",
    "Gamma_ray",
    "delta",
    "Epsilon",
  ]);
  expect((await namesOf({ sort_by: "graph_id", sort_order: "asc" }))[0]).toBe("Alpha");
  expect((await namesOf({ sort_by: "graph_id", sort_order: "desc" }))[0]).toBe("delta");
  for (const sort_by of ["assistant_id", "updated_at", "name"]) {
    const ascending = await namesOf({ sort_by, sort_order: "asc" });
    const descending = await namesOf({ sort_by, sort_order: "desc" });
    expect(descending).toEqual(ascending.reverse());
  }
});

test("pages contain the total, and the offset of the next page if there is one", async () => {
  const first = await search({ limit: 2 });
  expect(first.headers["x-pagination-total"]).toBe("5");
  expect(first.headers["x-pagination-next"]).toBe("2");
  const last = await search({ limit: 2, offset: 4 });
  expect(last.body).toHaveLength(1);
  expect(last.headers["x-pagination-total"]).toBe("5");
  expect(last.headers).not.toHaveProperty("x-pagination-next");
  const full = await search({ limit: 5 });
  expect(full.headers["x-pagination-total"]).toBe("5");
  expect(full.headers).not.toHaveProperty("x-pagination-next");
  const beyond = await search({ offset: 100 });
  expect(beyond.body).toEqual([]);
  expect(beyond.headers["x-pagination-total"]).toBe("5");
  const none = await search({ name: "nobody" });
  expect(none.headers["x-pagination-total"]).toBe("0");
});

test("the pages together contain each assistant once, also if the sorted field is equal", async () => {
  const found: string[] = [];
  for (let offset = 0; offset < 5; offset += 2) {
    const { body } = await search({ sort_by: "graph_id", limit: 2, offset, select: ["assistant_id"] });
    found.push(...body.map((one: { assistant_id: string }) => one.assistant_id));
  }
  expect(found.sort()).toEqual([...ids].sort());
});

test("select limits the fields", async () => {
  const { body } = await search({ name: "alpha", select: ["name", "created_at", "name"] });
  expect(body).toEqual([{ name: "Alpha", created_at: expect.stringMatching(/\+00:00$/) }]);
  const all = await search({ name: "alpha", select: [] });
  expect(Object.keys(all.body[0])).toHaveLength(10);
});

test.each([
  [{ limit: 0 }, "'limit': must be at least 1."],
  [{ limit: 1001 }, "'limit': must be at most 1000."],
  [{ offset: -1 }, "'offset': must be at least 0."],
  [{ sort_by: "context" }, /^'sort_by': must be one of 'assistant_id', /],
  [{ sort_by: "name; drop table assistants" }, /^'sort_by': /],
  [{ sort_order: "up" }, "'sort_order': must be one of 'asc', 'desc'."],
  [{ select: ["password"] }, /^'select.0': must be one of /],
  [{ metadata: { a: "\0" } }, /^'metadata': holds a NUL/],
  [{ metadata: { "\ud800": 1 } }, /^'metadata': holds a NUL character or half a surrogate pair/],
  [{ graph_id: "\0" }, /^'graph_id': holds a NUL/],
  [{ name: "\udfff" }, /^'name': holds a NUL/],
])("an invalid search causes a 422 whose sentence names the field: %j", async (body, detail) => {
  const answer = await server.client.post("/assistants/search").send(body);
  expect(answer.status).toBe(422);
  expect(answer.body.detail).toMatch(detail);
});
