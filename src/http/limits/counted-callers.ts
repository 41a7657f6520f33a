import ipaddr from "ipaddr.js";
import { callerName, type Caller } from "../../access/caller.ts";

/** Who is counted, and as how many: a key stands for an application with many users. */
export interface CountedCaller {
  name: string;
  times: number;
}

/** Who made a request. `ip`: the address of the caller, or of the last proxy that is not trusted. */
export interface CountedRequest {
  caller: Caller;
  ip: string;
}

export interface CountingOptions {
  keyFactor: number;
  /** Whether those without a name are told apart by their addresses. */
  countsAddresses: boolean;
}

/** Without a parser: it is asked with each request of a server that everybody on this machine may use. */
const isLoopback = (ip: string): boolean =>
  ip.startsWith("127.") || ip === "::1" || ip.startsWith("::ffff:127.");

/** An address of version 6 by its first half: whoever has one has all of the other half. */
const networkOf = (ip: string): string => {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  return `${(address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
};

/** Of an address that is counted; undefined for this machine's own. */
export const addressNameOf = (ip: string): string | undefined =>
  isLoopback(ip) ? undefined : `address:${networkOf(ip)}`;

/**
 * Tells who is counted for a request. Undefined: nobody, as on this machine itself, or where all callers come over
 * something in front that checks them and whose address would stand for all.
 */
export const createCounting =
  ({ keyFactor, countsAddresses }: CountingOptions) =>
  ({ caller, ip }: CountedRequest): CountedCaller | undefined => {
    const name = callerName(caller);
    if (name !== undefined) return { name, times: caller.kind === "key" ? keyFactor : 1 };
    const address = countsAddresses ? addressNameOf(ip) : undefined;
    return address === undefined ? undefined : { name: address, times: 1 };
  };
