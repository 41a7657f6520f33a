import type { OpenApi, Schema } from "./contract.ts";

/** Values that a schema of the contract allows: all choices, both ends of a range, and one for an open type. */

interface FullSchema extends Schema {
  enum?: unknown[];
  const?: unknown;
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  items?: FullSchema;
}

const EXAMPLES: Record<string, unknown> = {
  uuid: "01a20152-2071-749c-becb-96d826cdf571",
  "date-time": "2040-01-01T00:00:00Z",
  "uri-reference": "https://example.com/hook",
};

const samplesOfType = (type: string, schema: FullSchema, document: OpenApi): unknown[] => {
  switch (type) {
    case "string":
      return [EXAMPLES[schema.format ?? ""] ?? "text"];
    case "integer":
      return [schema.minimum ?? 1, schema.maximum ?? 2];
    case "number":
      return [1.5];
    case "boolean":
      return [true, false];
    case "null":
      return [null];
    case "array":
      return samplesOf(schema.items ?? {}, document).map((item) => [item]);
    default:
      return objectsOf(schema, document);
  }
};

/** An object with its required fields, and one for each value of each other field. */
const objectsOf = ({ properties = {}, required = [] }: FullSchema, document: OpenApi): unknown[] => {
  const least = Object.fromEntries(
    required.map((name) => [name, samplesOf(properties[name] ?? {}, document)[0]]),
  );
  return [
    least,
    ...Object.entries(properties).flatMap(([name, field]) =>
      samplesOf(field, document).map((value) => ({ ...least, [name]: value })),
    ),
  ];
};

export const samplesOf = (given: Schema, document: OpenApi): unknown[] => {
  const schema = given as FullSchema;
  if (schema.$ref !== undefined) {
    return samplesOf(document.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}, document);
  }
  if (schema.enum !== undefined) return schema.enum;
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) {
    return choices
      .filter(({ $ref, ...rest }) => $ref !== undefined || Object.keys(rest).length > 0)
      .flatMap((choice) => samplesOf(choice, document));
  }
  const types = schema.type === undefined ? [] : Array.isArray(schema.type) ? schema.type : [schema.type];
  return types.flatMap((type) => samplesOfType(type, schema, document));
};
