import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";

/**
 * The published contract of the hosted Agent Server against what this server says of itself. The fixture holds of
 * each operation: fields of the body (and the required ones), of the query, of the answer, and the status codes.
 */
interface Operation {
  body?: string[];
  body_is_list?: boolean;
  required?: string[];
  query?: string[];
  answer?: string[];
  statuses: number[];
}
type Contract = Record<string, Record<string, Operation>>;

interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}
interface Content {
  content?: Record<string, { schema: Schema }>;
}
interface Described {
  parameters?: { in: string; name: string }[];
  requestBody?: Content;
  responses: Record<string, Content>;
}
interface Document {
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema> };
}

const contract = JSON.parse(
  readFileSync(new URL("../fixtures/contract.json", import.meta.url), "utf8"),
) as Contract;

/** Where this server differs, and why: a status code that it never gives, or a field. */
const DELIBERATE: Record<string, string> = {
  "DELETE 200": "deletions answer 204: all clients take both",
  "GET /ok 500": "an unhealthy server says 503, which probes and proxies understand",
  "POST /assistants/search 404": "a filter that matches nothing finds nothing",
  "POST /assistants/count 404": "a filter that matches nothing counts 0",
  "POST /threads/count 404": "a filter that matches nothing counts 0",
  "POST /threads/{thread_id}/copy 409": "a copy has a new id, which can't be taken",
  "POST /threads/{thread_id}/runs/{run_id}/cancel 200": "a cancellation answers 202, or 204 with wait=1",
  "GET /store/items 400": "what does not validate is a 422 everywhere",
  langsmith_session_name: "runs are not traced to LangSmith",
};

/** Parts of the contract that this server does not offer. */
const NOT_OFFERED = [/^\/a2a\//, /^\/mcp\//, /crons/];

/** Parts that it does not offer yet. Whoever adds one takes it off this list: a test says so. */
const NOT_YET = new Set([
  "GET /threads/{thread_id}/stream",
  "POST /threads/{thread_id}/stream/events",
  "POST /threads/{thread_id}/commands",
]);

let server: TestServer;
let document: Document;
beforeAll(async () => {
  server = await startTestServer();
  document = (await server.client.get("/openapi.json")).body as Document;
});
afterAll(async () => {
  await server.close();
});

const resolve = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : resolve(document.components.schemas[schema.$ref.split("/").at(-1)!]!);

const branches = (schema: Schema): Schema[] => {
  const resolved = resolve(schema);
  const below = [...(resolved.anyOf ?? []), ...(resolved.oneOf ?? []), ...(resolved.allOf ?? [])];
  return [resolved, ...below.flatMap(branches)];
};

const fieldsOf = (schema: Schema | undefined): string[] => {
  if (schema === undefined) return [];
  const all = branches(schema).flatMap((branch) => [branch, ...(branch.items ? branches(branch.items) : [])]);
  return [...new Set(all.flatMap((branch) => Object.keys(branch.properties ?? {})))];
};

const requiredOf = (schema: Schema | undefined): string[] =>
  schema === undefined ? [] : (resolve(schema).required ?? []);

const jsonOf = (content: Content | undefined): Schema | undefined =>
  content?.content?.["application/json"]?.schema;

/** A path without the names of its parameters and without a trailing slash. */
const shape = (path: string): string => path.replace(/\{[^}]+\}/g, "{}").replace(/(.)\/$/, "$1");

const ours = (path: string, method: string): Described | undefined => {
  const found = Object.entries(document.paths).find(([candidate]) => shape(candidate) === shape(path));
  return found?.[1][method];
};

const operations = Object.entries(contract)
  .filter(([path]) => !NOT_OFFERED.some((pattern) => pattern.test(path)) && path !== "/docs")
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );

/** What of an operation of the contract is missing here. */
const gapsOf = ({ path, method, operation }: (typeof operations)[number]): string[] => {
  const verb = method.toUpperCase();
  const described = ours(path, method);
  if (described === undefined) return ["the operation"];
  const body = jsonOf(described.requestBody);
  const parameters = (described.parameters ?? []).map((parameter) => parameter.name);
  const statuses = Object.keys(described.responses);
  const answer = jsonOf(described.responses["200"]);
  return [
    ...missing(operation.body, fieldsOf(body)).map((field) => `body.${field}`),
    ...missing(requiredOf(body), operation.required ?? []).map((field) => `body.${field} is required`),
    ...missing(operation.query, parameters).map((field) => `query.${field}`),
    ...missing(operation.statuses.map(String), statuses)
      .filter(
        (status) => !(`${verb} ${path} ${status}` in DELIBERATE) && !(`${verb} ${status}` in DELIBERATE),
      )
      .map((status) => `status ${status}`),
    ...(answer === undefined ? [] : missing(operation.answer, fieldsOf(answer)))
      .filter((field) => !(field in DELIBERATE))
      .map((field) => `answer.${field}`),
  ];
};

const missing = (expected: string[] | undefined, actual: string[]): string[] =>
  (expected ?? []).filter((field) => !actual.includes(field));

const nameOf = ({ path, method }: (typeof operations)[number]): string => `${method.toUpperCase()} ${path}`;

test.each(operations.filter((operation) => !NOT_YET.has(nameOf(operation))))(
  "$method $path takes and gives what the contract says",
  (operation) => {
    expect(gapsOf(operation)).toEqual([]);
  },
);

test("what is listed as missing still is", () => {
  const open = operations.filter((operation) => gapsOf(operation).length > 0).map(nameOf);
  expect(open.filter((name) => NOT_YET.has(name)).sort()).toEqual([...NOT_YET].sort());
});
