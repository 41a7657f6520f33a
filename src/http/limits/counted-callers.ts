import ipaddr from "ipaddr.js";
import { callerName, type Caller } from "../../access/caller.ts";

/** A caller with its own limits. `times` multiplies them: an API key stands for an application with many users. */
export interface CountedCaller {
  name: string;
  times: number;
}

/** `ip`: the address of the caller, or of the last proxy that is not trusted. */
export interface CountedRequest {
  caller: Caller;
  ip: string;
}

export interface CountingOptions {
  keyFactor: number;
  /** Whether callers without a name are distinguished by address. */
  countsAddresses: boolean;
}

/** Uses no parser, because a server without keys calls this for each request. */
const isLoopback = (ip: string): boolean =>
  ip.startsWith("127.") || ip === "::1" || ip.startsWith("::ffff:127.");

/** An IPv6 address is reduced to its first 64 bits, because one network owns the other half. */
const networkOf = (ip: string): string => {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
};

/** Undefined for loopback addresses, which are not counted. */
export const addressNameOf = (ip: string): string | undefined =>
  isLoopback(ip) ? undefined : `address:${networkOf(ip)}`;

/** Undefined means not limited: on loopback, or if the address of a proxy would stand for all callers. */
export const createCounting =
  ({ keyFactor, countsAddresses }: CountingOptions) =>
  ({ caller, ip }: CountedRequest): CountedCaller | undefined => {
    const name = callerName(caller);
    if (name !== undefined) return { name, times: caller.kind === "key" ? keyFactor : 1 };
    const address = countsAddresses ? addressNameOf(ip) : undefined;
    return address === undefined ? undefined : { name: address, times: 1 };
  };
