import { z } from "zod";
import { StartError } from "../../platform/domain/errors.ts";

/** `webhooks` of langgraph.json: which addresses runs may name, and what is sent to them. */
export interface WebhookConfig {
  /** `http.disable_webhooks`: no run may name one, and none is called. */
  readonly disabled: boolean;
  /** Variables that headers may name begin with this. */
  readonly envPrefix: string;
  /** Headers of every request, their templates not filled in yet. */
  readonly headers: Readonly<Record<string, string>>;
  /** Fields of what is sent; undefined: all. */
  readonly allowedFields: readonly string[] | undefined;
  readonly requireHttps: boolean;
  /** Lower case; `*.example.com` is every name below it. Undefined: any. */
  readonly allowedDomains: readonly string[] | undefined;
  /** Undefined: any. */
  readonly allowedPorts: readonly number[] | undefined;
  /** Characters. */
  readonly maxUrlLength: number;
  /** Paths of this server may be named. */
  readonly allowsOwnRoutes: boolean;
  /** But none of the API: only routes of the project's own application. */
  readonly refusesApi: boolean;
  /** Addresses of this machine may be called. */
  readonly allowsLoopback: boolean;
  /** Private addresses may be called. */
  readonly allowsPrivate: boolean;
}

/** As at the hosted service. */
const ENV_PREFIX = "LG_WEBHOOK_";
const URL_LENGTH_AT_MOST = 4_096;

/** Set by the server for each request: what is signed, and what HTTP itself needs. */
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

/** An empty list is as good as none, as at the hosted service. */
const listed = <Item>(list: readonly Item[] | null | undefined): readonly Item[] | undefined =>
  list == null || list.length === 0 ? undefined : list;

/**
 * What is not said is refused where it could reach what only this machine can: loopback and private addresses need a
 * `false` of their own. Paths of this server are called as anybody could call them, so only a `true` refuses them.
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
 * The same where something in front of the server checks access (`--unsafe-no-auth`). What the server requests of itself goes
 * round that, and the body of a run's end is one for many routes of the API: the state of somebody else's thread, say.
 * Whoever says `disable_loopback: false` has allowed it.
 */
export const webhooksBehind = (config: WebhookConfig, { hasApp }: { hasApp: boolean }): WebhookConfig =>
  config.allowsLoopback
    ? config
    : { ...config, allowsOwnRoutes: config.allowsOwnRoutes && hasApp, refusesApi: true };

/** What whoever starts the server should know; undefined: nothing. */
export const webhooksWarning = ({ disabled, headers, allowedDomains }: WebhookConfig): string | undefined =>
  !disabled && allowedDomains === undefined && Object.values(headers).some((value) => value.includes("${{"))
    ? "webhooks.headers of langgraph.json has secrets of the environment, and webhooks.url.allowed_domains is not set: " +
      "whoever may create runs can have them sent to an address of theirs"
    : undefined;

const TEMPLATE = /\$\{\{\s*(.*?)\s*\}\}/g;

/**
 * The headers with what the environment has for their templates. Only variables with the prefix: whoever writes the
 * file must not be able to send other secrets away by mistake. Throws StartError.
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
            `${where} names ${variable}; only variables that begin with ${envPrefix} may be sent (webhooks.env_prefix).`,
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
