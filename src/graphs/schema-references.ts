import { isDeepStrictEqual } from "node:util";
import { isObject, type JsonObject, type JsonValue } from "../platform/lib/json.ts";

/** `$defs` of a document, by name. */
export type Definitions = Map<string, JsonValue | undefined>;

const stepTo = (name: string): string => encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"));

/** References count from the document's root, so the definitions of a property move there. */
export function propertySchema(key: string, schema: JsonObject, definitions: Definitions): JsonObject {
  const { definitions: older, $defs: newer, ...property } = schema;
  const own = Object.entries({ definitions: older, $defs: newer }).flatMap(([keyword, named]) =>
    isObject(named)
      ? Object.entries(named as JsonObject).map(([name, made]) => ({ keyword, name, made }))
      : [],
  );
  for (let copy = 1; ; copy += 1) {
    const names = new Map(
      own.map(({ keyword, name }) => {
        // Zod numbers the types that have no name.
        const given = name.replace(/^__schema/, `${key}_`);
        return [`${keyword}/${name}`, copy === 1 ? given : `${given}_${copy}`];
      }),
    );
    const moved = <Part extends JsonValue | undefined>(part: Part): Part =>
      redirected(part, (reference) => {
        const [, keyword = "", name = "", ...deeper] = reference.split("/");
        const known = names.get(`${keyword}/${name}`);
        return known === undefined
          ? `#/properties/${stepTo(key)}${reference.slice(1)}`
          : [`#/$defs/${stepTo(known)}`, ...deeper].join("/");
      });
    const added = own.map(
      ({ keyword, name, made }) => [names.get(`${keyword}/${name}`) ?? name, moved(made)] as const,
    );
    // Two properties may have the same type, or two types of one name.
    const areFree = added.every(
      ([name, made]) => !definitions.has(name) || isDeepStrictEqual(definitions.get(name), made),
    );
    if (!areFree) continue;
    for (const [name, made] of added) definitions.set(name, made);
    return moved(property);
  }
}

/** Changes each `$ref` to a place in the document. */
export function redirected<Schema extends JsonValue | undefined>(
  schema: Schema,
  to: (reference: string) => string,
): Schema;
export function redirected(
  schema: JsonValue | undefined,
  to: (reference: string) => string,
): JsonValue | undefined {
  if (Array.isArray(schema)) return schema.map((item) => redirected(item, to));
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, item]) =>
      key === "$ref" && typeof item === "string" && /^#(\/|$)/.test(item)
        ? [key, to(item)]
        : [key, redirected(item, to)],
    ),
  );
}
