import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import { isProbePath } from "./open-routes.ts";

/** An absolute http address: the authority, without name and password, and the rest. */
const ABSOLUTE = /^https?:\/\/([^/?@\\]+)(?:$|(?=[/?]))(.*)$/i;

/**
 * Returns path and query in one form, because readers disagree about the forms of RFC 9112, 3.2; an absolute address
 * also sets `Host`. Undefined for a fragment, which the router would read as a query.
 */
const pathOfTarget = ({ method, url = "/", headers }: IncomingMessage): string | undefined => {
  if (url.includes("#")) return undefined;
  if (url.startsWith("/")) return url;
  if (url === "*" && method === "OPTIONS") return "/";
  const [, authority, rest = ""] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return undefined;
  headers.host = authority;
  return rest.startsWith("/") ? rest : `/${rest}`;
};

/** Stands for every path outside the prefix, because no route can have this path. */
const OUTSIDE = "//outside";

/** Stands for an invalid path. The router cannot decode it and answers 400 before any hook. */
const UNREADABLE = "/%";

/** Paths in `Location` headers. Both SDKs prepend their base address, so the prefix appears twice. */
const NAMED_BY_LOCATION = /^\/(?:threads|runs)\//;

const behind = (prefix: string, url: string): string | undefined => {
  if (!url.startsWith(prefix)) return undefined;
  const rest = url.slice(prefix.length);
  if (rest === "" || rest.startsWith("?")) return `/${rest}`;
  return rest.startsWith("/") ? rest : undefined;
};

/**
 * For Fastify's `rewriteUrl`: normalizes a path and removes the prefix, so the rest of the server ignores the prefix.
 */
export const createRewriteUrl = (prefix: string): ((request: IncomingMessage) => string) => {
  if (prefix === "") return (request) => pathOfTarget(request) ?? UNREADABLE;
  return (request) => {
    const url = pathOfTarget(request);
    if (url === undefined) return UNREADABLE;
    const path = behind(prefix, url);
    if (path === undefined) {
      // Probes of a container often know only its port.
      return isProbePath(url) ? url : OUTSIDE;
    }
    const again = request.method === "GET" ? behind(prefix, path) : undefined;
    return again !== undefined && NAMED_BY_LOCATION.test(again) ? again : path;
  };
};

export const isOutside = ({ url }: { url: string }): boolean => url === OUTSIDE;

/** For routes that send addresses. */
export const nameMountPrefix = (app: FastifyInstance, prefix: string): void => {
  app.decorate("mountPrefix", prefix);
};
