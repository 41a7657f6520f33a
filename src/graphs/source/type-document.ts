import ts from "typescript";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { messageSchema, messagesSchema } from "../json-schemas.ts";
import type { TypeFacts } from "./type-facts.ts";

/** Deeper types become "anything": `type Nest<T> = { next: Nest<T[]> }` never ends or repeats. */
const DEPTH_AT_MOST = 10;
/** Per document. The type of a client library's class leads to thousands. */
const TYPES_AT_MOST = 1_000;
/** A form shows no longer list. */
const CHOICES_AT_MOST = 500;

const WITHOUT_SCHEMA =
  ts.TypeFlags.Any |
  ts.TypeFlags.Unknown |
  ts.TypeFlags.Never |
  ts.TypeFlags.VoidLike |
  ts.TypeFlags.ESSymbolLike |
  ts.TypeFlags.BigIntLike;
const PRIMITIVE =
  ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike | ts.TypeFlags.BooleanLike | ts.TypeFlags.Null;

export class TypeDocument {
  #typesLeft = TYPES_AT_MOST;
  readonly #open = new Set<ts.Type>();
  readonly #names = new Map<ts.Type, string>();
  readonly #definitions = new Map<string, JsonObject>();

  constructor(
    private readonly checker: ts.TypeChecker,
    private readonly facts: TypeFacts,
  ) {}

  /** Call it once per document. */
  make(type: ts.Type): JsonObject {
    const schema = this.#schemaOf(type, 0);
    return this.#definitions.size === 0
      ? schema
      : { ...schema, definitions: Object.fromEntries(this.#definitions) };
  }

  #schemaOf(type: ts.Type, depth: number): JsonObject {
    this.#typesLeft -= 1;
    if (this.#typesLeft < 0 || depth > DEPTH_AT_MOST || (type.flags & WITHOUT_SCHEMA) !== 0) return {};
    if ((type.flags & ts.TypeFlags.Null) !== 0) return { type: "null" };
    if (type.isUnion()) return this.#unionSchema(type, depth);
    if ((type.flags & PRIMITIVE) !== 0) return this.#primitiveSchema(type);
    if ((type.flags & ts.TypeFlags.NonPrimitive) !== 0) return { type: "object" };
    if ((type.flags & ts.TypeFlags.Instantiable) !== 0) {
      const constraint = this.checker.getBaseConstraintOfType(type);
      return constraint === undefined || constraint === type ? {} : this.#schemaOf(constraint, depth + 1);
    }
    if (type.isIntersection()) {
      // A brand, e.g. `string & { readonly brand: "id" }`.
      const primitive = type.types.find((member) => (member.flags & PRIMITIVE) !== 0);
      if (primitive !== undefined) return this.#schemaOf(primitive, depth + 1);
    }
    return this.#objectSchema(type, depth);
  }

  #primitiveSchema(type: ts.Type): JsonObject {
    if (type.isStringLiteral()) return { type: "string", const: type.value };
    if (type.isNumberLiteral())
      return { type: "number", ...(Number.isFinite(type.value) ? { const: type.value } : {}) };
    if ((type.flags & ts.TypeFlags.BooleanLiteral) !== 0)
      return { type: "boolean", const: this.checker.typeToString(type) === "true" };
    if ((type.flags & ts.TypeFlags.StringLike) !== 0) return { type: "string" };
    return { type: (type.flags & ts.TypeFlags.NumberLike) !== 0 ? "number" : "boolean" };
  }

  #unionSchema(type: ts.UnionType, depth: number): JsonObject {
    if (this.facts.isMessages(type)) return messagesSchema();
    if (this.facts.isMessage(type)) return messageSchema();
    const members = type.types.filter(
      (member) => (member.flags & ts.TypeFlags.VoidLike) === 0 && !this.facts.isOverwrite(member),
    );
    const [only] = members;
    if (members.length === 1 && only !== undefined) return this.#schemaOf(only, depth);
    if (members.length > CHOICES_AT_MOST) {
      if (members.every(({ flags }) => (flags & ts.TypeFlags.StringLike) !== 0)) return { type: "string" };
      return members.every(({ flags }) => (flags & ts.TypeFlags.NumberLike) !== 0) ? { type: "number" } : {};
    }
    return this.#named(type, () => anyOf(members.map((member) => this.#schemaOf(member, depth + 1))));
  }

  #objectSchema(type: ts.Type, depth: number): JsonObject {
    if (this.facts.isMessages(type)) return messagesSchema();
    if (this.facts.isMessage(type)) return messageSchema();
    if (this.facts.isFunction(type)) return {};
    if (this.checker.isArrayType(type)) {
      const [item] = this.checker.getTypeArguments(type as ts.TypeReference);
      return this.#named(type, () => listOf(item === undefined ? {} : this.#schemaOf(item, depth + 1)));
    }
    if (this.checker.isTupleType(type))
      return this.#named(type, () => this.#tupleSchema(type as ts.TypeReference, depth));
    const builtIn = this.facts.builtInName(type);
    if (builtIn !== undefined) return builtIn === "Date" ? { type: "string", format: "date-time" } : {};
    return this.#named(type, () => this.#fieldsSchema(type, depth));
  }

  #tupleSchema(type: ts.TypeReference, depth: number): JsonObject {
    const { minLength, hasRestElement } = type.target as ts.TupleType;
    const items = this.checker.getTypeArguments(type).map((item) => this.#schemaOf(item, depth + 1));
    return {
      ...listOf(items.length === 0 ? {} : anyOf(items)),
      minItems: minLength,
      ...(hasRestElement ? {} : { maxItems: items.length }),
    };
  }

  #fieldsSchema(type: ts.Type, depth: number): JsonObject {
    const properties: [string, JsonObject][] = [];
    const required: string[] = [];
    for (const field of this.facts.fieldsOf(type)) {
      const valueType = this.checker.getTypeOfSymbol(field);
      if (this.facts.isFunction(valueType)) continue;
      const schema = { ...this.#schemaOf(valueType, depth + 1), ...this.facts.descriptionOf(field) };
      properties.push([field.name, schema]);
      if (!this.facts.acceptsNothing(field, valueType)) required.push(field.name);
    }
    const index = this.checker.getIndexInfoOfType(type, ts.IndexKind.String);
    return {
      type: "object",
      // No assignment, because a property may be named `__proto__`.
      ...(properties.length > 0 ? { properties: Object.fromEntries(properties) } : {}),
      ...(required.length > 0 ? { required } : {}),
      ...(index === undefined ? {} : { additionalProperties: this.#schemaOf(index.type, depth + 1) }),
    };
  }

  #named(type: ts.Type, make: () => JsonObject): JsonObject {
    const known = this.#names.get(type);
    if (this.#open.has(type) || (known !== undefined && this.#definitions.has(known)))
      return { $ref: `#/definitions/${this.#nameOf(type)}` };
    this.#open.add(type);
    const schema = make();
    this.#open.delete(type);
    const name = this.#names.get(type);
    if (name === undefined) return schema;
    this.#definitions.set(name, schema);
    return { $ref: `#/definitions/${name}` };
  }

  #nameOf(type: ts.Type): string {
    const known = this.#names.get(type);
    if (known !== undefined) return known;
    const given = (type.aliasSymbol ?? type.getSymbol())?.name.replace(/\W/g, "") ?? "";
    const base = given === "" || given.startsWith("__") ? "Type" : given;
    const taken = new Set(this.#names.values());
    let name = base;
    for (let count = 2; taken.has(name); count += 1) name = `${base}_${count}`;
    this.#names.set(type, name);
    return name;
  }
}

const isAnything = (schema: JsonObject): boolean => Object.keys(schema).length === 0;

const listOf = (items: JsonObject): JsonObject => ({
  type: "array",
  ...(isAnything(items) ? {} : { items }),
});

const anyOf = (schemas: readonly JsonObject[]): JsonObject => {
  if (schemas.some(isAnything)) return {};
  const distinct = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
  const values = distinct.filter((schema) => Object.hasOwn(schema, "const"));
  const others = distinct.filter((schema) => !Object.hasOwn(schema, "const"));
  const choices = [...enumerations(values), ...others];
  const [only] = choices;
  return choices.length === 1 && only !== undefined ? only : { anyOf: choices };
};

const enumerations = (values: readonly JsonObject[]): JsonObject[] =>
  ["string", "number", "boolean"].flatMap((type): JsonObject[] => {
    const constants = values
      .filter((schema) => schema.type === type)
      .map((schema): JsonValue => schema.const ?? null);
    if (constants.length === 0) return [];
    if (constants.length === 1) return [{ type, const: constants[0] ?? null }];
    return [type === "boolean" ? { type } : { type, enum: constants }];
  });
