import { readFileSync } from "node:fs";
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import formats from "ajv-formats";

export interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}
export interface Content {
  content?: Record<string, { schema?: Schema }>;
}
export interface Described {
  parameters?: { in: string; name: string; required?: boolean; schema?: Schema }[];
  requestBody?: Content & { required?: boolean };
  responses: Record<string, Content & { headers?: Record<string, unknown> }>;
}
export interface OpenApi {
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema> };
}

/** The published contract of the hosted Agent Server, without its prose. */
export const contract = JSON.parse(
  readFileSync(new URL("./openapi.json", import.meta.url), "utf8"),
) as OpenApi;

/** One of the contract's operations: `GET /threads/{thread_id}`. */
export interface Operation {
  name: string;
  method: string;
  path: string;
  described: Described;
}

export const operations: Operation[] = Object.entries(contract.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, described]) => ({
    name: `${method.toUpperCase()} ${path}`,
    method,
    path,
    described,
  })),
);

const ID = "contract";
// Not strict: the contract has keywords of OpenAPI 3.0 (`nullable`), and `properties` without a type.
const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
formats.default(ajv);
ajv.addSchema(contract, ID);

const pointer = (...parts: string[]): string =>
  parts.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");

/** @param document the target of the schema's references */
export const isValid = (schema: Schema, value: unknown, { components }: OpenApi): boolean =>
  ajv.validate({ ...schema, components }, value);

/** `/0/values must be object`, with `*` for the index of a list. */
const inWords = ({ instancePath, message, params }: ErrorObject): string => {
  const place = instancePath.replace(/\/\d+(?=\/|$)/g, "/*");
  const name = "missingProperty" in params ? "" : place;
  return `${name || place || "/"} ${message ?? ""}`;
};

const violationsAt = (place: string, value: unknown): string[] => {
  const validate = ajv.compile({ $ref: `${ID}#/${place}` });
  return validate(value) ? [] : [...new Set((validate.errors ?? []).map(inWords))].sort();
};

/**
 * The parts of a body that violate the contract's schema.
 * @param answer of a JSON type: parsed; of another one: the text
 */
export const violationsOf = (
  { path, method, described }: Operation,
  status: string,
  answer: { contentType: string; body: unknown },
): string[] => {
  const content = described.responses[status]?.content;
  if (content === undefined) return [];
  const type = answer.contentType.split(";")[0] ?? "";
  const schema = content[type]?.schema;
  if (schema === undefined) {
    return type in content ? [] : [`the content type is '${type}', not ${Object.keys(content).join(" or ")}`];
  }
  return violationsAt(
    pointer("paths", path, method, "responses", status, "content", type, "schema"),
    answer.body,
  );
};

/** The same for one of the contract's named schemas. */
export const violationsOfSchema = (name: string, value: unknown): string[] =>
  violationsAt(pointer("components", "schemas", name), value);
