import { resolve } from "node:path";
import { z } from "zod";

/** An export in langgraph.json, e.g. `./app.ts:app`. */
export interface NamedExport {
  /** Absolute. */
  readonly file: string;
  readonly exportName: string;
}

export const exportOf = (reference: string, folder: string): NamedExport => {
  const colon = reference.lastIndexOf(":");
  // A path follows a Windows drive letter.
  const isNamed = colon > 1 && !/[/\\]/.test(reference.slice(colon));
  return isNamed
    ? {
        file: resolve(folder, reference.slice(0, colon)),
        exportName: reference.slice(colon + 1) || "default",
      }
    : { file: resolve(folder, reference), exportName: "default" };
};

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

export const corsRulesOf = (cors: NonNullable<z.output<typeof corsSchema>>): CorsRules => {
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

/** Parts that `http.disable_*` removes. */
const API_PARTS = [
  "assistants",
  "threads",
  "runs",
  "store",
  "meta",
  "mcp",
  "a2a",
  "agui",
  "ui",
  "webhooks",
] as const;
export type ApiPart = (typeof API_PARTS)[number];

/** `http` of langgraph.json. */
export interface HttpRules {
  readonly cors: CorsRules | undefined;
  /** The project's own application, served beside the API and around it. */
  readonly app: NamedExport | undefined;
  /** Without a trailing slash; empty for none. */
  readonly mountPrefix: string;
  readonly disabled: ReadonlySet<ApiPart>;
  /** Request headers copied to `config.configurable`; undefined: the default ones. */
  readonly configurableHeaders: HeaderChoice | undefined;
  readonly loggingHeaders: HeaderChoice | undefined;
  /** Authenticates before the application runs. */
  readonly authFirst: boolean;
  /** Authenticates the application's own routes, too. */
  readonly customRouteAuth: boolean;
}

/** Restricted, because it goes into headers and addresses. */
const MOUNT_PREFIX = /^(?:\/[\w.~-]+)+$/;

const mountPrefix = z
  .string()
  .refine((text) => text === "" || text === "/" || MOUNT_PREFIX.test(text), {
    error: 'must be a path like "/agents", without a slash at its end',
  })
  .transform((text) => (text === "/" ? "" : text));

const disabling = Object.fromEntries(API_PARTS.map((part) => [`disable_${part}`, z.boolean().nullish()])) as {
  [Part in ApiPart as `disable_${Part}`]: z.ZodOptional<z.ZodNullable<z.ZodBoolean>>;
};

export const httpSchema = z
  .object({
    cors: corsSchema,
    app: z.string().min(1).nullish(),
    mount_prefix: mountPrefix.nullish(),
    ...disabling,
    configurable_headers: headersSchema,
    logging_headers: headersSchema,
    middleware_order: z
      .enum(["middleware_first", "auth_first"], {
        error: 'must be "middleware_first" or "auth_first"',
      })
      .nullish(),
    enable_custom_route_auth: z.boolean().nullish(),
  })
  .nullish();

type HttpFields = z.output<typeof httpSchema>;

/**
 * @param folder base of relative paths
 * @throws RangeError for an invalid `app`
 */
export const httpRulesOf = (http: HttpFields, folder: string): HttpRules => ({
  cors: http?.cors == null ? undefined : corsRulesOf(http.cors),
  app: http?.app == null ? undefined : exportOf(http.app, folder),
  mountPrefix: http?.mount_prefix ?? "",
  disabled: new Set(API_PARTS.filter((part) => http?.[`disable_${part}`] === true)),
  configurableHeaders: headerChoiceOf(http?.configurable_headers),
  loggingHeaders: headerChoiceOf(http?.logging_headers),
  authFirst: http?.middleware_order === "auth_first",
  customRouteAuth: http?.enable_custom_route_auth ?? false,
});
