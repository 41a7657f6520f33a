import { z } from "zod";

/** `http.cors` of langgraph.json. */
export interface CorsRules {
  /** Undefined: neither origins nor a pattern are set. */
  readonly origins: readonly string[] | undefined;
  /** Matches whole origins. */
  readonly originPattern: RegExp | undefined;
  /** Undefined: all methods of the API. */
  readonly methods: readonly string[] | undefined;
  /** Undefined: all requested headers. */
  readonly headers: readonly string[] | undefined;
  /** In addition to those that clients read. */
  readonly exposedHeaders: readonly string[];
  /** Has no effect if any origin is allowed. */
  readonly credentials: boolean;
  readonly maxAgeSeconds: number;
}

/** The hosted service's value. */
const MAX_AGE_SECONDS = 600;
/** Browsers cap it at this. */
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

/** Validated, because the text goes into response headers. */
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

const unlessAny = (list: readonly string[] | null | undefined): readonly string[] | undefined =>
  list == null || list.includes(ANY) ? undefined : list;

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

export const corsWarning = (rules: CorsRules | undefined): string | undefined =>
  rules?.credentials === true && rules.origins?.includes(ANY) === true
    ? "'http.cors.allow_credentials' has no effect beside 'allow_origins' of '*': name the origins that may send cookies"
    : undefined;
