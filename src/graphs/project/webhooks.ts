import { z } from "zod";
import { StartError } from "../../platform/domain/errors.ts";

/** `webhooks` of langgraph.json. */
export interface WebhookConfig {
  /** `http.disable_webhooks`: runs can't have webhooks. */
  readonly disabled: boolean;
  /** Headers may use only variables with this prefix. */
  readonly envPrefix: string;
  /** Sent with every request; templates are not filled in. */
  readonly headers: Readonly<Record<string, string>>;
  /** Fields of the body; undefined: all. */
  readonly allowedFields: readonly string[] | undefined;
  readonly requireHttps: boolean;
  /** Lower case; `*.example.com` matches all subdomains. Undefined: any. */
  readonly allowedDomains: readonly string[] | undefined;
  /** Undefined: any. */
  readonly allowedPorts: readonly number[] | undefined;
  readonly maxUrlLength: number;
  /** Whether webhooks may call paths of this server. */
  readonly allowsOwnRoutes: boolean;
  /** Only routes of the project's application are allowed, not the API's. */
  readonly refusesApi: boolean;
  readonly allowsLoopback: boolean;
  readonly allowsPrivate: boolean;
}

/** The hosted service's values. */
const ENV_PREFIX = "LG_WEBHOOK_";
const URL_LENGTH_AT_MOST = 4_096;

/** Signature headers and HTTP's own, which the server sets. */
const SERVERS_OWN =
  /^(webhook-.*|content-.*|transfer-encoding|connection|host|upgrade|expect|te|trailer|keep-alive)$/i;

const domain = z
  .string()
  .regex(/^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i, {
    error: 'must be a name like "hooks.example.com", or "*.example.com" for every name below it',
  })
  .transform((name) => name.toLowerCase());
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~\w-]+$/, { error: "must be the name of a header" })
  .refine((name) => !SERVERS_OWN.test(name), { error: "is a header that the server sets itself" });
const headerValue = z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, { error: "must be one line of text" });

export const webhooksSchema = z
  .object({
    env_prefix: z.string().min(1).nullish(),
    headers: z.record(headerName, headerValue).nullish(),
    allowed_fields: z.array(z.string().min(1)).nullish(),
    url: z
      .object({
        require_https: z.boolean().nullish(),
        allowed_domains: z.array(domain).nullish(),
        allowed_ports: z.array(z.number().int().min(1).max(65_535)).nullish(),
        max_url_length: z.number().int().min(1).max(65_536).nullish(),
        disable_loopback: z.boolean().nullish(),
        disable_private_ips: z.boolean().nullish(),
      })
      .nullish(),
  })
  .nullish();

/** An empty list means none is set, as at the hosted service. */
const listed = <Item>(list: readonly Item[] | null | undefined): readonly Item[] | undefined =>
  list == null || list.length === 0 ? undefined : list;

/**
 * Loopback and private addresses need an explicit `false`, because only this machine reaches them. Paths of this server
 * are open to all callers, so only `true` refuses them.
 */
export const webhookConfigOf = (
  webhooks: z.output<typeof webhooksSchema>,
  disabled: boolean,
): WebhookConfig => {
  const url = webhooks?.url;
  return {
    disabled,
    envPrefix: webhooks?.env_prefix ?? ENV_PREFIX,
    headers: webhooks?.headers ?? {},
    allowedFields: listed(webhooks?.allowed_fields),
    requireHttps: url?.require_https ?? false,
    allowedDomains: listed(url?.allowed_domains),
    allowedPorts: listed(url?.allowed_ports),
    maxUrlLength: url?.max_url_length ?? URL_LENGTH_AT_MOST,
    allowsOwnRoutes: url?.disable_loopback !== true,
    refusesApi: false,
    allowsLoopback: url?.disable_loopback === false,
    allowsPrivate: url?.disable_private_ips === false,
  };
};

/**
 * For `--unsafe-no-auth`: the server's own requests bypass the proxy that checks access. An explicit `disable_loopback:
 * false` allows such webhooks.
 */
export const webhooksBehind = (config: WebhookConfig, { hasApp }: { hasApp: boolean }): WebhookConfig =>
  config.allowsLoopback
    ? config
    : { ...config, allowsOwnRoutes: config.allowsOwnRoutes && hasApp, refusesApi: true };

export const webhooksWarning = ({ disabled, headers, allowedDomains }: WebhookConfig): string | undefined =>
  !disabled && allowedDomains === undefined && Object.values(headers).some((value) => value.includes("${{"))
    ? "webhooks.headers of langgraph.json has secrets of the environment, and webhooks.url.allowed_domains is not set: " +
      "callers that may create runs can have them sent to their own address"
    : undefined;

const TEMPLATE = /\$\{\{\s*(.*?)\s*\}\}/g;

/**
 * Fills in only variables with the prefix, so that the file's author does not send other secrets by mistake.
 * @throws StartError
 */
export const webhookHeaders = (
  { headers, envPrefix }: Pick<WebhookConfig, "headers" | "envPrefix">,
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      const filled = value.replace(TEMPLATE, (_, expression: string) => {
        const variable = /^env\.([A-Za-z_][A-Za-z0-9_]*)$/.exec(expression)?.[1];
        const where = `webhooks.headers.${name} of langgraph.json`;
        if (variable === undefined)
          throw new StartError(`${where} has '\${{ ${expression} }}'; write \${{ env.NAME }}.`);
        if (!variable.startsWith(envPrefix))
          throw new StartError(
            `${where} names ${variable}. Only variables with the prefix ${envPrefix} may be sent (webhooks.env_prefix).`,
          );
        const given = environment[variable];
        if (given === undefined || given === "")
          throw new StartError(`${where} names ${variable}, which is not set.`);
        return given;
      });
      if (!headerValue.safeParse(filled).success)
        throw new StartError(`webhooks.headers.${name} would not be one line of text.`);
      return [name, filled];
    }),
  );
