import { z } from "zod";

/** A choice of request headers, as `{includes, excludes}` in langgraph.json. All names are in small letters. */
export interface HeaderChoice {
  /** Names, or patterns whose `*` stands for any characters; undefined: not given. */
  readonly includes: readonly string[] | undefined;
  readonly excludes: readonly string[];
}

/** A header's name, or one with `*` in the place of any characters. */
const pattern = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~\w-]{1,200}$/, {
    error: 'must be the name of a header, or a pattern like "x-own-*"',
  })
  .transform((name) => name.toLowerCase());
const patterns = z.array(pattern).max(100).nullish();

/** The documentation of the hosted service spells them both ways. */
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
