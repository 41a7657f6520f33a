import type { RJSFSchema } from "@rjsf/utils";

/** A prepared schema names these fields in `$id`. */
export const JSON_FIELD = "JsonField";
export const MESSAGES_FIELD = "MessagesField";

export const CHOICES_FIELD = "ChoicesField";

/** The form library takes inherited members for properties. */
export const isInherited = (name: string): boolean => name in Object.prototype;

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"] as const;
type TypeName = (typeof TYPES)[number];
export const isTypeName = (type: unknown): type is TypeName => (TYPES as readonly unknown[]).includes(type);

const TYPE_WORDS: Readonly<Record<TypeName, string>> = {
  string: "Text",
  number: "Number",
  integer: "Whole number",
  boolean: "Yes or no",
  object: "Object",
  array: "List",
  null: "Nothing (null)",
};

const FIRST_VALUES: Readonly<Record<TypeName, unknown>> = {
  string: "",
  number: 0,
  integer: 0,
  boolean: false,
  object: {},
  array: [],
  null: null,
};

/** A list, because the form library matches "null" with an undefined value. */
export const NULL: RJSFSchema = { type: ["null"] };

export const optionNameOf = ({ const: constant, title, type, enum: choices }: RJSFSchema): string => {
  if (constant !== undefined) return String(constant);
  if (title !== undefined) return title;
  const single: unknown = Array.isArray(type) ? type[0] : type;
  return isTypeName(single) ? TYPE_WORDS[single] : choices === undefined ? "JSON" : "Choice";
};

const optionsOf = ({ anyOf, oneOf }: RJSFSchema): readonly RJSFSchema[] =>
  (anyOf ?? oneOf ?? []) as RJSFSchema[];

/** The value of a list item or a required field stays when it is emptied. */
export const staying = (schema: RJSFSchema): RJSFSchema => {
  for (const option of optionsOf(schema)) option["x-stays"] = true;
  return { ...schema, "x-stays": true };
};

export const firstValueOf = ({ enum: choices, type, ...schema }: RJSFSchema): unknown => {
  const [option] = optionsOf(schema);
  if (option !== undefined) return firstValueOf(option);
  return choices?.[0] ?? (isTypeName(type) ? FIRST_VALUES[type] : undefined);
};
