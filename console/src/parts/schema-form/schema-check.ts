import { Validator, type OutputUnit, type Schema, type SchemaDraft } from "@cfworker/json-schema";
import { truncate } from "../../design/truncate.ts";
import { BoundedSchema } from "./bounded-schema.ts";

export const asSent = (value: unknown): unknown =>
  value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);

export interface SchemaError {
  path: string[];
  message: string;
}

const ERRORS_AT_MOST = 50;
/** Bounds the time while the user types. */
const CHARACTERS_AT_MOST = 300_000;

const draftOf = ({ $schema }: Readonly<Record<string, unknown>>): SchemaDraft => {
  const name = typeof $schema === "string" ? $schema : "";
  if (name.includes("draft-04")) return "4";
  if (/draft-0[67]/.test(name)) return "7";
  return name.includes("2019-09") ? "2019-09" : "2020-12";
};

/** The validator lists every choice, which may be thousands. */
const CHARACTERS_OF_MESSAGE = 300;

/** Keywords that repeat the error of a nested value. */
const CONTAINERS = new Set([
  ..."properties patternProperties additionalProperties unevaluatedProperties items prefixItems additionalItems".split(
    " ",
  ),
  ..."unevaluatedItems allOf $ref $recursiveRef if then else dependentSchemas dependencies".split(" "),
]);
/** The errors of single alternatives say little. */
const ALTERNATIVES = new Set(["anyOf", "oneOf", "not", "contains"]);

const pathOf = (location: string): string[] =>
  location
    .split("/")
    .slice(1)
    .map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));

const TYPE_WORDS: ReadonlyMap<string, string> = new Map([
  ["string", "text"],
  ["number", "a number"],
  ["integer", "a whole number"],
  ["boolean", "yes or no"],
  ["object", "an object"],
  ["array", "a list"],
  ["null", "null"],
]);
const typesOf = (error: string): string =>
  [...(error.split("Expected", 2)[1] ?? "").matchAll(/"(\w+)"/g)]
    .map(([, type = ""]) => TYPE_WORDS.get(type) ?? type)
    .join(" or ");

const toError = ({ keyword, instanceLocation, error }: OutputUnit): SchemaError => {
  const path = pathOf(instanceLocation);
  switch (keyword) {
    case "required": {
      const name = /property "([^]*)"\.$/.exec(error)?.[1];
      return name === undefined
        ? { path, message: error }
        : { path: [...path, name], message: "is required" };
    }
    case "type":
      return { path, message: `must be ${typesOf(error)}` };
    case "false":
      return { path, message: "is not allowed here" };
    case "anyOf":
      return { path, message: "matches none of the alternatives" };
    case "oneOf":
      return { path, message: "must match exactly one of the alternatives" };
    default:
      return {
        path,
        message: truncate(error.replace(/^Instance /, "").replace(/\.$/, ""), CHARACTERS_OF_MESSAGE),
      };
  }
};

interface Check {
  /** The validator writes to the schema. */
  bounded: BoundedSchema;
  validator: Validator;
}

const checkOf = (schema: Readonly<Record<string, unknown>>): Check | undefined => {
  try {
    if (JSON.stringify(schema).length > CHARACTERS_AT_MOST) return undefined;
    const bounded = new BoundedSchema(schema);
    return { bounded, validator: new Validator(bounded.schema as Schema, draftOf(schema), false) };
  } catch {
    return undefined;
  }
};

/** Checks without `eval`, which the content security policy forbids. */
export class SchemaCheck {
  readonly #known: Check | undefined;
  #last: { value: unknown; errors: SchemaError[] } | undefined;

  constructor(schema: Readonly<Record<string, unknown>>) {
    this.#known = checkOf(schema);
  }

  /** Empty if the check is impossible. */
  errorsOf(value: unknown): SchemaError[] {
    if (this.#known === undefined || value === undefined) return [];
    if (this.#last !== undefined && this.#last.value === value) return this.#last.errors;
    const errors = this.#check(value);
    this.#last = { value, errors };
    return errors;
  }

  #check(value: unknown): SchemaError[] {
    try {
      if (JSON.stringify(value).length > CHARACTERS_AT_MOST) return [];
      this.#known?.bounded.begin(value);
      const units = this.#known?.validator.validate(asSent(value)).errors ?? [];
      const hidden = units
        .filter(({ keyword }) => ALTERNATIVES.has(keyword))
        .map((unit) => `${unit.keywordLocation}/`);
      const said = units
        .filter(({ keyword }) => !CONTAINERS.has(keyword))
        .filter(({ keywordLocation }) => !hidden.some((start) => keywordLocation.startsWith(start)));
      return (said.length > 0 ? said : units.slice(0, 1)).slice(0, ERRORS_AT_MOST).map(toError);
    } catch {
      return [];
    }
  }
}

export const errorText = ({ path, message }: SchemaError): string =>
  path.length === 0 ? `The value ${message}.` : `${path.join(" › ")}: ${message}.`;
