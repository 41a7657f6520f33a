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

/** Where this server differs, and why. */
const DELIBERATE: Record<string, string> = {
  "DELETE 200": "deletions answer 204: all clients take both",
  "GET /ok 500": "an unhealthy server says 503, which probes and proxies understand",
  "POST /assistants/search 404": "a filter that matches nothing finds nothing",
  "POST /assistants/count 404": "a filter that matches nothing counts 0",
};

/** Parts of the contract that this server does not offer. */
const NOT_OFFERED = [/^\/a2a\//, /^\/mcp\//, /crons/];

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

test.each(operations)(
  "$method $path takes and gives what the contract says",
  ({ path, method, operation }) => {
    const name = `${method.toUpperCase()} ${path}`;
    const described = ours(path, method);
    expect(described, `${name} is missing`).toBeDefined();
    if (described === undefined) return;

    const body = jsonOf(described.requestBody);
    const parameters = (described.parameters ?? []).map((parameter) => parameter.name);
    expect({ [name]: missing(operation.body, fieldsOf(body)) }).toEqual({ [name]: [] });
    // Nothing that the contract leaves to the caller may be required.
    expect({ [name]: missing(requiredOf(body), operation.required ?? []) }).toEqual({ [name]: [] });
    expect({ [name]: missing(operation.query, parameters) }).toEqual({ [name]: [] });

    const statuses = Object.keys(described.responses);
    const absent = operation.statuses.filter(
      (status) =>
        !statuses.includes(String(status)) &&
        !(`${name} ${status}` in DELIBERATE) &&
        !(`${method.toUpperCase()} ${status}` in DELIBERATE),
    );
    expect({ [name]: absent }).toEqual({ [name]: [] });

    const answer = jsonOf(described.responses["200"]);
    if (answer !== undefined)
      expect({ [name]: missing(operation.answer, fieldsOf(answer)) }).toEqual({ [name]: [] });
  },
);

const missing = (expected: string[] | undefined, actual: string[]): string[] =>
  (expected ?? []).filter((field) => !actual.includes(field));
