import { z } from "zod";
import { corsRulesOf, corsSchema, corsWarning, type CorsRules } from "./cors.ts";
import { headerChoiceOf, headersSchema, type HeaderChoice } from "./headers.ts";
import { exportOf, type NamedExport } from "./named-export.ts";

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
  cors: corsRulesOf(http?.cors),
  app: http?.app == null ? undefined : exportOf(http.app, folder),
  mountPrefix: http?.mount_prefix ?? "",
  disabled: new Set(API_PARTS.filter((part) => http?.[`disable_${part}`] === true)),
  configurableHeaders: headerChoiceOf(http?.configurable_headers),
  loggingHeaders: headerChoiceOf(http?.logging_headers),
  authFirst: http?.middleware_order === "auth_first",
  customRouteAuth: http?.enable_custom_route_auth ?? false,
});

export const httpWarnings = (http: HttpFields): string[] => {
  const cors = corsWarning(corsRulesOf(http?.cors));
  const { app, enable_custom_route_auth: customRouteAuth, middleware_order: order } = http ?? {};
  const idle = [
    ...(order == null ? [] : ["http.middleware_order"]),
    ...(customRouteAuth === true ? ["http.enable_custom_route_auth"] : []),
  ];
  return [
    ...(cors === undefined ? [] : [cors]),
    ...(app == null && idle.length > 0
      ? [
          `${idle.map((key) => `'${key}'`).join(" and ")} ${idle.length === 1 ? "has" : "have"} no effect without 'http.app'`,
        ]
      : []),
    ...(app != null && customRouteAuth === true && order === "middleware_first"
      ? [
          "'http.middleware_order' of 'middleware_first' has no effect beside 'http.enable_custom_route_auth', " +
            "which asks who calls before the application is called",
        ]
      : []),
  ];
};
