import type { IncomingMessage } from "node:http";

/** An address of this kind of server: the authority, without anybody's name and password, and what follows it. */
const ABSOLUTE = /^https?:\/\/([^/?@\\]+)(?:$|(?=[/?]))(.*)$/i;

/**
 * The path and query that a request asks for, for whoever routes it. A request line may name them in other forms than `/…`
 * (RFC 9112, 3.2), and each reader would make something else of those: the router finds `/threads` in `http://a/threads`, and who
 * compares texts does not. So there is one form behind this: an absolute address is reduced to its path, and its authority is
 * the `Host`, as the RFC wants it; `OPTIONS *` is about the whole server; everything else is undefined, also what has a
 * fragment, in which the router sees a query.
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
