import type { FastifySchemaCompiler } from "fastify";
import type { z } from "zod";
import { invalid } from "../platform/domain/errors.ts";
import { ownField } from "../platform/lib/names.ts";

/** By Fastify's names for the parts of a request. */
const PARTS: Record<string, string> = { body: "The body", querystring: "The query", params: "The path" };

const typeOf = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a number";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
};

const EXPECTED: Record<string, string> = {
  int: "an integer",
  array: "a list",
  object: "an object",
  record: "an object",
  string: "a string",
  number: "a number",
  boolean: "true or false",
};

const UNITS: Record<string, string> = { string: " characters", array: " items" };

/** The predicate of a sentence whose subject is the field. */
const complaintOf = (issue: z.core.$ZodRawIssue): string | undefined => {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is required";
      return Number.isNaN(issue.input)
        ? "must be a number"
        : `must be ${ownField(EXPECTED, issue.expected) ?? issue.expected}, not ${typeOf(issue.input)}`;
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.map((value) => `'${String(value)}'`).join(", ")}`;
    case "too_small":
      return `must be at least ${issue.minimum}${ownField(UNITS, issue.origin) ?? ""}`;
    case "too_big":
      return `must be at most ${issue.maximum}${ownField(UNITS, issue.origin) ?? ""}`;
    case "unrecognized_keys":
      return `has unknown keys: ${issue.keys.join(", ")}`;
    default:
      return undefined;
  }
};

const depthOf = (issues: z.core.$ZodIssue[]): number => issues[0]?.path.length ?? 0;

/** The user probably meant the branch of a union that matched deepest. */
const meant = (issue: z.core.$ZodIssue): z.core.$ZodIssue => {
  if (issue.code !== "invalid_union" || issue.message !== "Invalid input") return issue;
  let closest: z.core.$ZodIssue[] = [];
  for (const branch of issue.errors) {
    if (branch.length > 0 && (closest.length === 0 || depthOf(branch) > depthOf(closest))) closest = branch;
  }
  const [first] = closest;
  return first === undefined ? issue : meant({ ...first, path: [...issue.path, ...first.path] });
};

const sentenceOf = (part: string, error: z.ZodError): string => {
  const [first] = error.issues;
  if (first === undefined) return `${part} is not valid.`;
  const { path, message } = meant(first);
  const field = path.map(String).join(".");
  return field === "" ? `${part}: ${message}.` : `'${field}': ${message}.`;
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
