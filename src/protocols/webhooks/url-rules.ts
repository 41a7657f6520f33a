import ipaddr from "ipaddr.js";
import { isIP } from "node:net";
import { invalid } from "../../platform/domain/errors.ts";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";

type AllowedNetworks = Pick<WebhookConfig, "allowsLoopback" | "allowsPrivate">;

/**
 * Metadata services, which give keys to virtual machines, as `ipaddr.js` writes them. The private ones stay refused
 * even if private networks are allowed.
 */
const HOSTS_OF_CLOUDS: ReadonlySet<string> = new Set([
  "168.63.129.16", // Azure
  "100.100.100.200", // Alibaba Cloud
  "fd00:ec2::254", // AWS
  "fd20:ce::254", // Google Cloud
  "fd00:c1::a9fe:a9fe", // Oracle Cloud
  "fd00:42::42", // Scaleway
]);
const PRIVATE = new Set(["private", "uniqueLocal", "carrierGradeNat"]);
/** All assigned IPv6 addresses; ranges that map to IPv4 have their own name. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

/** The reason, as the end of "… is"; undefined if the address is allowed. Unknown ranges are refused, too. */
export const refusalOf = (address: string, allowed: AllowedNetworks): string | undefined => {
  const bare = address.split("%")[0] ?? "";
  if (!ipaddr.isValid(bare)) return "no address";
  // Converts IPv4 in IPv6, such as ::ffff:127.0.0.1.
  const parsed = ipaddr.process(bare);
  const range: string = parsed.range();
  if (HOSTS_OF_CLOUDS.has(parsed.toString())) return "an address of the machine's host";
  if (range === "loopback") return allowed.allowsLoopback ? undefined : "a loopback address";
  if (PRIVATE.has(range)) return allowed.allowsPrivate ? undefined : "a private address";
  if (range === "linkLocal") return "a link-local address";
  const isPublic =
    range === "unicast" && (parsed.kind() === "ipv4" || (parsed as ipaddr.IPv6).match(GLOBAL_UNICAST));
  return isPublic ? undefined : "no public address";
};

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
