import { z } from "zod";

export interface Option<Value> {
  flag?: string;
  /** One letter, as in `langgraphjs dev`. */
  shortFlag?: string;
  switch?: boolean;
  /** Environment variables. The first that is set counts. */
  environment: readonly string[];
  default?: string;
  /** The end of the sentence "PORT must be …". */
  expected: string;
  /** Messages omit the value. */
  secret?: boolean;
  description: string;
  /** Takes undefined if the option is not set and has no default. */
  schema: z.ZodType<Value, string | undefined>;
}

export type Options = Readonly<Record<string, Option<unknown>>>;

type ReadOnly<Value> = Value extends readonly (infer Item)[]
  ? readonly Item[]
  : Value extends ReadonlyMap<infer Key, infer Item>
    ? ReadonlyMap<Key, Item>
    : Value;

export type ValuesOf<Table extends Options> = {
  readonly [Name in keyof Table]: ReadOnly<z.output<Table[Name]["schema"]>>;
};

export const BYTES_PER_MEGABYTE = 1_000_000;

export const wholeNumber = (from: number, to: number) => ({
  expected: `a whole number from ${from} to ${to}`,
  schema: z.string().pipe(z.coerce.number<string>().int().min(from).max(to)),
});
export const seconds = (from: number, to: number) => ({
  expected: `a number of seconds from ${from} to ${to}`,
  schema: z.string().pipe(z.coerce.number<string>().min(from).max(to)),
});
export const byGraph = (unit: "seconds" | "runs", example: string, from: number, to: number) => ({
  expected: `a list like ${example} of graph ids and ${unit === "runs" ? "whole " : ""}numbers of ${unit} from ${from} to ${to}`,
  schema: z.string().transform((textOfAll, context) => {
    const pairs = list(textOfAll).map((pair) => /^(.+?)\s*=\s*(\d+(?:\.\d+)?)$/.exec(pair));
    const numbers = pairs.map((pair) => [pair?.[1] ?? "", Number(pair?.[2])] as const);
    const isAllowed = (number: number): boolean =>
      number >= from && number <= to && (unit === "seconds" || Number.isInteger(number));
    if (numbers.every(([, number]) => isAllowed(number))) return new Map(numbers);
    context.addIssue({ code: "custom", message: `no list of graphs and ${unit}` });
    return z.NEVER;
  }),
});
export const oneOf = <const Values extends readonly [string, ...string[]]>(values: Values) => ({
  expected: `one of ${values.join(", ")}`,
  schema: z.string().pipe(z.enum(values)),
});
export const text = (expected: string) => ({ expected, schema: z.string() });
export const flag = { expected: "true or false", schema: z.string().pipe(z.stringbool()) };
export const list = (textOfAll: string): string[] =>
  textOfAll
    .split(/[,\n]/)
    .map((item) => item.trim())
    .filter((item) => item !== "" && !item.startsWith("#"));
export const commaSeparated = { expected: "a list separated by commas", schema: z.string().transform(list) };
