import { z } from "zod";

/** From what a variable of the hosted service holds to the text that the option takes. */
export interface Translation {
  expected: string;
  /** A text that the option refuses, if this is not what was expected; undefined: it means another option. */
  translate(text: string): string | undefined;
}

/** One row of the table. */
export interface Option<Value> {
  /** Name on the command line, without the dashes. */
  flag?: string;
  /** The same in one letter, where `langgraphjs dev` has one. */
  shortFlag?: string;
  /** The flag takes no value. */
  switch?: boolean;
  /** Names in the environment; the first that is set counts. */
  environment: readonly string[];
  /** Of those names: the hosted service's that say the same in other words. */
  translations?: Readonly<Record<string, Translation>>;
  default?: string;
  /** What a value has to be, as the end of "PORT must be …". */
  expected: string;
  /** Values are not repeated in messages. */
  secret?: boolean;
  description: string;
  /** From the text to the value; undefined is an option that is not set and has no default. */
  schema: z.ZodType<Value, string | undefined>;
}

/** Sizes are given in millions of bytes. */
export const BYTES_PER_MEGABYTE = 1_000_000;

/** What an option has to be, in words and as a schema. */
export const wholeNumber = (from: number, to: number) => ({
  expected: `a whole number from ${from} to ${to}`,
  schema: z.string().pipe(z.coerce.number<string>().int().min(from).max(to)),
});
export const seconds = (from: number, to: number) => ({
  expected: `a number of seconds from ${from} to ${to}`,
  schema: z.string().pipe(z.coerce.number<string>().min(from).max(to)),
});
/** Read as bytes. */
export const megabytes = (from: number, to: number) => ({
  expected: `a number of megabytes from ${from} to ${to}`,
  schema: z
    .string()
    .pipe(z.coerce.number<string>().min(from).max(to))
    .transform((number) => Math.round(number * BYTES_PER_MEGABYTE)),
});
/** Numbers by the ids of graphs. `unit`: what they count. */
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
/** The items of a text that is separated by commas or lines; a line that starts with # is a comment. */
export const list = (textOfAll: string): string[] =>
  textOfAll
    .split(/[,\n]/)
    .map((item) => item.trim())
    .filter((item) => item !== "" && !item.startsWith("#"));
export const commaSeparated = { expected: "a list separated by commas", schema: z.string().transform(list) };
