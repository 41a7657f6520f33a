import { z } from "zod";

/** `http.cors` of langgraph.json: which pages of other origins may call, and what they may send and read. */
export interface CorsRules {
  /** Undefined where the file names none, nor a pattern. */
  readonly origins: readonly string[] | undefined;
  /** Matches whole origins. */
  readonly originPattern: RegExp | undefined;
  /** Undefined for all that the API has. */
  readonly methods: readonly string[] | undefined;
  /** Undefined for whatever a page asks for. */
  readonly headers: readonly string[] | undefined;
  /** Beside those that the clients read. */
  readonly exposedHeaders: readonly string[];
  /** Pages may send cookies and the like. It has no effect where any origin is let in. */
  readonly credentials: boolean;
  /** For how long a browser may remember a preflight's answer. */
  readonly maxAgeSeconds: number;
}

/** As at the hosted service. */
const MAX_AGE_SECONDS = 600;
/** Browsers remember no longer than this. */
const MAX_AGE_SECONDS_AT_MOST = 86_400;

const ANY = "*";

const wholeMatch = (text: string): RegExp => new RegExp(`^(?:${text})$`);

const isPattern = (text: string): boolean => {
  try {
    wholeMatch(text);
    return true;
  } catch {
    return false;
  }
};

/** A method or the name of a header, as HTTP has them; else it would end up in our own headers. */
const token = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~\w-]+$/, { error: "must be the name of a method or a header" });
const origin = z
  .string()
  .regex(/^[^\s,]+$/, { error: 'must be an origin like "https://app.example", or "*"' });

export const corsSchema = z
  .object({
    allow_origins: z.array(origin).nullish(),
    allow_origin_regex: z
      .string()
      .refine(isPattern, { error: "must be a regular expression of JavaScript" })
      .nullish(),
    allow_methods: z.array(token).nullish(),
    allow_headers: z.array(token).nullish(),
    allow_credentials: z.boolean().nullish(),
    expose_headers: z.array(token).nullish(),
    max_age: z.int().min(0).nullish(),
  })
  .nullish();

/** `*` is as good as no list. */
const unlessAny = (list: readonly string[] | null | undefined): readonly string[] | undefined =>
  list == null || list.includes(ANY) ? undefined : list;

/** Undefined if the file says nothing of it. */
export const corsRulesOf = (cors: z.output<typeof corsSchema>): CorsRules | undefined => {
  if (cors == null) return undefined;
  const pattern = cors.allow_origin_regex;
  return {
    origins: cors.allow_origins ?? (pattern == null ? undefined : []),
    originPattern: pattern == null ? undefined : wholeMatch(pattern),
    methods: unlessAny(cors.allow_methods)?.map((method) => method.toUpperCase()),
    headers: unlessAny(cors.allow_headers),
    exposedHeaders: cors.expose_headers ?? [],
    credentials: cors.allow_credentials ?? false,
    maxAgeSeconds: Math.min(cors.max_age ?? MAX_AGE_SECONDS, MAX_AGE_SECONDS_AT_MOST),
  };
};

/** What has no effect, as a sentence. */
export const corsWarning = (rules: CorsRules | undefined): string | undefined =>
  rules?.credentials === true && rules.origins?.includes(ANY) === true
    ? "'http.cors.allow_credentials' has no effect beside 'allow_origins' of '*': name the origins that may send cookies"
    : undefined;
