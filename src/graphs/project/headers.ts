import { z } from "zod";

/** `{includes, excludes}` in langgraph.json. All names are lower case. */
export interface HeaderChoice {
  /** Names or patterns (`*`: any characters); undefined: not set. */
  readonly includes: readonly string[] | undefined;
  readonly excludes: readonly string[];
}

const pattern = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~\w-]{1,200}$/, {
    error: 'must be the name of a header, or a pattern like "x-own-*"',
  })
  .transform((name) => name.toLowerCase());
const patterns = z.array(pattern).max(100).nullish();

/** The hosted service documents both spellings. */
export const headersSchema = z
  .object({ includes: patterns, excludes: patterns, include: patterns, exclude: patterns })
  .nullish();

export const headerChoiceOf = (headers: z.output<typeof headersSchema>): HeaderChoice | undefined => {
  if (headers == null) return undefined;
  return {
    includes: headers.includes ?? headers.include ?? undefined,
    excludes: headers.excludes ?? headers.exclude ?? [],
  };
};
