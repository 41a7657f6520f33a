import { malformed } from "../platform/domain/errors.ts";

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

const LOOPBACK_HOST = /^(?:localhost|[\w-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;
const HOST = /^[\w.-]+(?::\d+)?$|^\[[0-9a-f:]+\](?::\d+)?$/i;
const PREFIX = /^(?:\/[\w.~-]+)+$/;

const forwarded = (headers: Headers, name: string, pattern: RegExp): string | undefined => {
  const value = headers[`x-forwarded-${name}`];
  const first = typeof value === "string" ? value.split(",")[0]?.trim() : undefined;
  return first !== undefined && pattern.test(first) ? first : undefined;
};

/**
 * This server's address for the client, with a proxy's `X-Forwarded-*`; undefined without a host. It has no scheme if
 * nothing tells it, so that a page uses its own. A caller that forges the headers only harms itself.
 */
export const addressFor = (headers: Headers): string | undefined => {
  const host = forwarded(headers, "host", HOST) ?? headers.host;
  if (typeof host !== "string" || !HOST.test(host)) return undefined;
  const protocol = forwarded(headers, "proto", /^https?$/) ?? (LOOPBACK_HOST.test(host) ? "http" : undefined);
  const prefix = forwarded(headers, "prefix", PREFIX) ?? "";
  return `${protocol === undefined ? "" : `${protocol}:`}//${host}${prefix}`;
};

/** Proxies with TLS listen there; on another port, clients reach the server itself, which has no TLS. */
const TLS_HOST = /^\/\/(?:[^:[]+|\[[^\]]*\])(?::8?443)?(?:\/|$)/;

/** The address with its scheme, for documents that clients read outside a page. Throws `malformed` without a host. */
export const publicAddress = (headers: Headers): string => {
  const address = addressFor(headers);
  if (address === undefined) throw malformed("The request has no Host that clients could call.");
  if (!address.startsWith("//")) return address;
  return `${TLS_HOST.test(address) ? "https" : "http"}:${address}`;
};
