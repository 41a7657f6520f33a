import { isIP } from "node:net";
import { invalid } from "../../platform/domain/errors.ts";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";
import { refusalOf } from "./addresses.ts";

const OWN = "http://own.invalid";

/** Undefined for another host or for no path. */
export const ownRouteOf = (text: string): string | undefined => {
  // `//host` and `/\host` name other hosts; the URL parser knows all such spellings.
  if (!text.startsWith("/") || !URL.canParse(text, OWN)) return undefined;
  const { origin, pathname, search } = new URL(text, OWN);
  return origin === OWN ? `${pathname}${search}` : undefined;
};

/** An IPv6 address without its brackets. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

const isLocalName = (host: string): boolean => /^(.+\.)?localhost\.?$/.test(host);

const isAllowedDomain = (host: string, domains: readonly string[]): boolean => {
  const name = host.replace(/\.$/, "");
  return domains.some((allowed) =>
    allowed.startsWith("*.") ? name.endsWith(allowed.slice(1)) : name === allowed,
  );
};

/** As the end of a sentence. */
const urlRefusal = (url: URL, config: WebhookConfig): string | undefined => {
  const { requireHttps, allowedDomains, allowedPorts } = config;
  if (url.protocol !== "https:" && url.protocol !== "http:") return "must be an http or https address";
  if (requireHttps && url.protocol !== "https:") return "must be an https address";
  const host = hostOf(url);
  if (allowedDomains !== undefined && !isAllowedDomain(host, allowedDomains))
    return `names '${host}', which 'allowed_domains' does not have`;
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  if (allowedPorts !== undefined && !allowedPorts.includes(port))
    return `names port ${port}, which 'allowed_ports' does not have`;
  if (isLocalName(host)) return config.allowsLoopback ? undefined : "names this machine, which is refused";
  const refusal = isIP(host) === 0 ? undefined : refusalOf(host, config);
  return refusal === undefined ? undefined : `names '${host}', which is ${refusal}`;
};

/** As the end of "'webhook' …". request.ts checks the addresses of names when it connects. */
export const webhookRefusal = (text: string, config: WebhookConfig): string | undefined => {
  if (config.disabled) return "can't be used: webhooks are disabled on this server";
  if (text.length > config.maxUrlLength) return `is longer than ${config.maxUrlLength} characters`;
  if (ownRouteOf(text) !== undefined)
    return config.allowsOwnRoutes
      ? undefined
      : "must be an absolute address: those of this server are refused";
  if (text.startsWith("/") || !URL.canParse(text))
    return "must be an http or https address, or a path like /hook";
  return urlRefusal(new URL(text), config);
};

/** Throws `invalid`. */
export const createWebhookCheck =
  (config: WebhookConfig) =>
  (webhook: string | undefined): void => {
    const refusal = webhook === undefined ? undefined : webhookRefusal(webhook, config);
    if (refusal !== undefined) throw invalid(`'webhook' ${refusal}.`);
  };
