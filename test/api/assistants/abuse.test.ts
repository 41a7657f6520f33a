import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAssistants } from "../../helpers/parts.ts";

/** Almost valid requests: the fields of the contract with arbitrary values. */

let server: Awaited<ReturnType<typeof startAssistants>>;
let assistantId: string;
beforeAll(async () => {
  server = await startAssistants();
  const { body } = await server.client.post("/assistants").send({ graph_id: "agent" });
  assistantId = body.assistant_id;
});
afterAll(async () => {
  await server.close();
});

const REQUESTS = 1_500;
const AT_ONCE = 16;

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("agent", "", "\0", "\ud800", "';--", "%_\\"),
);
const anything = fc.oneof(
  text,
  fc.jsonValue({ maxDepth: 4 }),
  fc.double(),
  fc.maxSafeInteger(),
  fc.constantFrom(null, true, {}, [], { configurable: 1 }, { tags: [{}] }, { recursion_limit: 1e300 }),
);
const FIELDS = [
  "assistant_id",
  "graph_id",
  "name",
  "description",
  "config",
  "context",
  "metadata",
  "if_exists",
  "version",
  "limit",
  "offset",
  "sort_by",
  "sort_order",
  "select",
];
const body = fc
  .dictionary(fc.constantFrom(...FIELDS), anything, { maxKeys: 6 })
  .chain((fields) => fc.boolean().map((valid) => (valid ? { ...fields, graph_id: "agent" } : fields)));
const reference = fc.oneof(
  fc.constantFrom("agent", "two-step", "00000000-0000-0000-0000-000000000000"),
  text.map((one) => one.toWellFormed()),
);
const request = fc.record({
  body,
  reference,
  query: fc.dictionary(
    fc.constantFrom("xray", "recurse", "delete_threads", "version"),
    text.map((one) => one.toWellFormed()),
  ),
  route: fc.constantFrom(
    ["POST", ""],
    ["POST", "/search"],
    ["POST", "/count"],
    ["GET", "/:id"],
    ["PATCH", "/:id"],
    ["POST", "/:id/versions"],
    ["POST", "/:id/latest"],
    ["GET", "/:id/graph"],
    ["GET", "/:id/schemas"],
    ["GET", "/:id/subgraphs"],
    ["GET", "/:id/subgraphs/:ns"],
    ["DELETE", "/:id"],
  ) as fc.Arbitrary<[string, string]>,
});

test("any request gets a 2xx or a refusal in one sentence, never a 5xx", async () => {
  const drawn = fc.sample(request, REQUESTS);
  const send = async (one: (typeof drawn)[number]) => {
    const [method, path] = one.route;
    const url = new URL(
      `${server.url}/assistants${path.replace(":id", encodeURIComponent(one.reference)).replace(":ns", encodeURIComponent(one.reference))}`,
    );
    for (const [name, value] of Object.entries(one.query)) url.searchParams.append(name, value);
    const answer = await fetch(url, {
      method,
      ...(method === "GET"
        ? {}
        : { body: JSON.stringify(one.body), headers: { "content-type": "application/json" } }),
    });
    const answered = await answer.text();
    const context = {
      method,
      url: url.href,
      body: JSON.stringify(one.body),
      status: answer.status,
      answered,
    };
    expect(answer.status, JSON.stringify(context)).toBeLessThan(500);
    if (answer.status === 204) expect(answered).toBe("");
    else if (answer.ok) JSON.parse(answered);
    else
      expect(JSON.parse(answered), JSON.stringify(context)).toEqual({
        detail: expect.stringMatching(/.\.$/s),
      });
  };
  for (let index = 0; index < drawn.length; index += AT_ONCE) {
    await Promise.all(drawn.slice(index, index + AT_ONCE).map(send));
  }
  expect(server.lines.filter((line) => line.includes('"level":50'))).toEqual([]);
});

test("an attempt to inject SQL through filters, sorting or ids has no effect", async () => {
  const payloads = [
    "'; drop table assistants; --",
    "1 or 1=1",
    "name) --",
    '"; select pg_sleep(5); --',
    "$1",
    "\\'",
  ];
  for (const payload of payloads) {
    const path = `/assistants/${encodeURIComponent(payload)}`;
    expect((await server.client.get(path)).status).toBe(404);
    for (const filter of [
      { name: payload },
      { graph_id: payload },
      { metadata: { [payload]: payload } },
      { metadata: { a: { [payload]: [payload] } } },
    ]) {
      const answer = await server.client.post("/assistants/search").send(filter);
      expect([answer.status, answer.body]).toEqual([200, []]);
    }
    for (const filter of [{ sort_by: payload }, { sort_order: payload }, { select: [payload] }]) {
      expect((await server.client.post("/assistants/search").send(filter)).status).toBe(422);
    }
  }
  expect((await server.client.get(`/assistants/${assistantId}`)).status).not.toBe(500);
});
