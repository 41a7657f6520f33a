import ipaddr from "ipaddr.js";
import type { WebhookConfig } from "../../graphs/project/webhooks.ts";

/** Which kinds of addresses may be called beside public ones. */
export type AllowedNetworks = Pick<WebhookConfig, "allowsLoopback" | "allowsPrivate">;

/**
 * Where virtual machines are told their keys, beside the link-local addresses that are refused in any case: a public address
 * (Azure), and private ones, which stay refused where others are allowed. As `ipaddr.js` writes them.
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
/** All that is given out of the addresses of IPv6; what leads on to IPv4 lies outside, or has a range of its own. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Why an address must not be called, as the end of "… is"; undefined if it may. `address`: as the operating system and
 * the usual spelling of an address have it, without brackets. A list of what is public, not of what is refused: whatever
 * is of no known kind is refused, too.
 */
export const refusalOf = (address: string, allowed: AllowedNetworks): string | undefined => {
  const bare = address.split("%")[0] ?? "";
  if (!ipaddr.isValid(bare)) return "no address";
  // An IPv4 address that is written as IPv6 (::ffff:127.0.0.1) is that address.
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
