import type { RJSFSchema } from "@rjsf/utils";
import { isObject } from "../is-object.ts";
import { CHOICES_FIELD, isInherited, JSON_FIELD } from "./kinds.ts";

const LEAVES_AT_MOST = 400;
const CHARACTERS_AT_MOST = 200_000;

const countOf = (value: unknown, enough: number): number => {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  for (const child of Object.values(value)) {
    if (count > enough) return count;
    count += countOf(child, enough - count);
  }
  return count;
};

const fits = (value: unknown, schema: RJSFSchema): boolean => {
  if (value === undefined || schema.$id === JSON_FIELD || schema.anyOf || schema.oneOf) return true;
  if (schema.$id === CHOICES_FIELD) {
    const { enum: choices = [] } = schema.items as RJSFSchema;
    return Array.isArray(value) && value.every((each) => (choices as unknown[]).includes(each));
  }
  if (schema.enum) return (schema.enum as unknown[]).includes(value);
  switch (schema.type) {
    case "string":
    case "boolean":
      return typeof value === schema.type;
    case "number":
    case "integer":
      return typeof value === "number";
    case "array": {
      const { items } = schema;
      return (
        Array.isArray(value) && value.every((item) => !isObject(items) || fits(item, items as RJSFSchema))
      );
    }
    case "object": {
      if (!isObject(value)) return false;
      const { properties = {}, additionalProperties } = schema;
      return Object.entries(value).every(([name, child]) => {
        if (Object.hasOwn(properties, name)) return fits(child, properties[name] as RJSFSchema);
        if (isInherited(name)) return false;
        return !isObject(additionalProperties) || fits(child, additionalProperties as RJSFSchema);
      });
    }
    default:
      return true;
  }
};

/**
 * The end of a sentence; undefined if a form can show the value.
 * @param schema a prepared schema
 */
export const unfitReason = (value: unknown, schema: RJSFSchema): string | undefined => {
  const isLong = (JSON.stringify(value) ?? "").length > CHARACTERS_AT_MOST;
  if (isLong || countOf(value, LEAVES_AT_MOST) > LEAVES_AT_MOST) return "it is too long for a form";
  if (!fits(value, schema)) return "it does not match its schema";
  return undefined;
};

/** The form keeps keys without a field. */
export const keysOutsideForm = (value: unknown, schema: RJSFSchema): string[] =>
  isObject(value) && schema.additionalProperties === undefined
    ? Object.keys(value).filter((name) => !Object.hasOwn(schema.properties ?? {}, name))
    : [];
