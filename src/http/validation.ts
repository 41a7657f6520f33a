import type { FastifySchemaCompiler } from "fastify";
import { z } from "zod";
import { invalid } from "../platform/domain/errors.ts";
import { notA } from "../platform/domain/json-schemas.ts";
import { ownField } from "../platform/lib/names.ts";

/** By Fastify's names for the parts of a request. */
const PARTS: Record<string, string> = { body: "The body", querystring: "The query", params: "The path" };

const EXPECTED: Record<string, string> = {
  int: "an integer",
  array: "a list",
  tuple: "a list",
  object: "an object",
  record: "an object",
  string: "a string",
  number: "a number",
  boolean: "true or false",
};

/** Texts and lists have sizes; numbers are sizes. */
const UNITS: Record<string, string> = { string: "character", array: "item" };

const sizeOf = (bound: "least" | "most", origin: string, size: number | bigint): string => {
  const unit = ownField(UNITS, origin);
  if (unit === undefined) return `must be at ${bound} ${size}`;
  if (bound === "least" && size === 1) return "must not be empty";
  return `must have at ${bound} ${size} ${unit}${size === 1 ? "" : "s"}`;
};

const FORMATS: Record<string, string> = {
  uuid: "a UUID",
  guid: "a UUID",
  date: "a date, such as 2026-01-31",
  datetime: "an ISO 8601 time",
};

const expectedOf = (issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): string => {
  const { inst, expected } = issue;
  if (inst instanceof z.ZodNumber && inst.isInt) return "an integer";
  return ownField(EXPECTED, expected) ?? expected;
};

/** The predicate of a sentence whose subject is the field. */
const complaintOf = (issue: z.core.$ZodRawIssue): string | undefined => {
  switch (issue.code) {
    case "invalid_type":
      return Number.isNaN(issue.input)
        ? `must be ${expectedOf(issue)}`
        : notA(expectedOf(issue), issue.input);
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.map((value) => `'${String(value)}'`).join(", ")}`;
    case "invalid_format": {
      const format = ownField(FORMATS, issue.format);
      return format === undefined ? undefined : `must be ${format}`;
    }
    case "too_small":
      return sizeOf("least", issue.origin, issue.minimum);
    case "too_big":
      return sizeOf("most", issue.origin, issue.maximum);
    case "unrecognized_keys":
      return `has unknown keys: ${issue.keys.join(", ")}`;
    default:
      return undefined;
  }
};

const OF_TYPE = /^must be (.+?)(, not .+)?$/;

/** Names all types that a field may have, as `must be a string or a list, not an object`. */
const anyOf = (issues: z.core.$ZodIssue[]): string | undefined => {
  const matches = issues.map(({ message }) => OF_TYPE.exec(message));
  const types = [...new Set(matches.flatMap((match) => (match === null ? [] : [match[1]!])))];
  const last = types.pop();
  if (last === undefined || matches.includes(null)) return issues[0]?.message;
  const not = matches.find((match) => match?.[2] !== undefined)?.[2] ?? "";
  return `must be ${types.length === 0 ? "" : `${types.join(", ")} or `}${last}${not}`;
};

/** The user probably meant the branch of a union that matched deepest. */
const meant = (issue: z.core.$ZodIssue): z.core.$ZodIssue => {
  if (issue.code !== "invalid_union" || issue.message !== "Invalid input") return issue;
  const branches = issue.errors.flatMap(([first]) => (first === undefined ? [] : [meant(first)]));
  const depth = Math.max(...branches.map(({ path }) => path.length));
  const closest = branches.filter(({ path }) => path.length === depth);
  const [first] = closest;
  if (first === undefined) return issue;
  return { ...first, path: [...issue.path, ...first.path], message: anyOf(closest) ?? first.message };
};

/** Zod reports it before the bound of the field. */
const isBoundOfIntegers = (issue: z.core.$ZodIssue): boolean =>
  (issue.code === "too_big" && issue.maximum === Number.MAX_SAFE_INTEGER) ||
  (issue.code === "too_small" && issue.minimum === Number.MIN_SAFE_INTEGER);

const sentenceOf = (part: string, { issues }: z.ZodError): string => {
  const first = issues.find((issue) => !isBoundOfIntegers(issue)) ?? issues[0];
  if (first === undefined) return `${part} is not valid.`;
  const { path, message } = meant(first);
  const field = path.map(String).join(".");
  return field === "" ? `${part} ${message}.` : `'${field}': ${message}.`;
};

/** Validates again with messages. Zod takes nearly twice as long with messages, so valid requests go without. */
const complaintAbout = (schema: z.ZodType, given: unknown, part: string, error: z.ZodError): Error =>
  invalid(sentenceOf(part, schema.safeParse(given, { error: complaintOf }).error ?? error));

/** Throws `invalid`. `part`: the subject of the error's sentence. */
export const validated = <Schema extends z.ZodType>(
  schema: Schema,
  given: unknown,
  part: string,
): z.output<Schema> => {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw complaintAbout(schema, given, part, result.error);
};

/** Throws `invalid` with one sentence that names the field. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  const part = ownField(PARTS, httpPart ?? "body") ?? "The request";
  return (data: unknown) => {
    const given = data ?? undefined; // Fastify passes null if there is no body
    const result = schema.safeParse(given);
    return result.success
      ? { value: result.data }
      : { error: complaintAbout(schema, given, part, result.error) };
  };
};
