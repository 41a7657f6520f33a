import type { IncomingMessage } from "node:http";

/** An absolute http address: the authority, without name and password, and the rest. */
const ABSOLUTE = /^https?:\/\/([^/?@\\]+)(?:$|(?=[/?]))(.*)$/i;

/**
 * Returns path and query in one form, because readers disagree about the forms of RFC 9112, 3.2; an absolute address
 * also sets `Host`. Undefined for a fragment, which the router would read as a query.
 */
export const pathOfTarget = ({ method, url = "/", headers }: IncomingMessage): string | undefined => {
  if (url.includes("#")) return undefined;
  if (url.startsWith("/")) return url;
  if (url === "*" && method === "OPTIONS") return "/";
  const [, authority, rest = ""] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return undefined;
  headers.host = authority;
  return rest.startsWith("/") ? rest : `/${rest}`;
};
