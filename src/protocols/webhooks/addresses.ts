import ipaddr from "ipaddr.js";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";

export type AllowedNetworks = Pick<WebhookConfig, "allowsLoopback" | "allowsPrivate">;

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
