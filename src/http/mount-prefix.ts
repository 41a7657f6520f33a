import type { FastifyInstance } from "fastify";
import type { IncomingMessage } from "node:http";
import { isProbePath } from "./open-routes.ts";
import { pathOfTarget } from "./request-target.ts";

/** Stands for every path outside: no route can have it, and nobody asks for it. */
const OUTSIDE = "//outside";

/** Stands for what is no path. No router can decode it: it is answered 400, before any hook. */
const UNREADABLE = "/%";

/**
 * What a header `Location` names. The SDKs of both languages put the address that they were given, with the prefix, in front
 * of it once more.
 */
const NAMED_BY_LOCATION = /^\/(?:threads|runs)\//;

/** What of a path stands behind the prefix; undefined if it is not below it. */
const behind = (prefix: string, url: string): string | undefined => {
  if (!url.startsWith(prefix)) return undefined;
  const rest = url.slice(prefix.length);
  if (rest === "" || rest.startsWith("?")) return `/${rest}`;
  return rest.startsWith("/") ? rest : undefined;
};

/**
 * What a request asks for, for Fastify's `rewriteUrl`: a path in one form (request-target.ts), and without the prefix: all behind it sees
 * paths as if there was none.
 */
export const createRewriteUrl = (prefix: string): ((request: IncomingMessage) => string) => {
  if (prefix === "") return (request) => pathOfTarget(request) ?? UNREADABLE;
  return (request) => {
    const url = pathOfTarget(request);
    if (url === undefined) return UNREADABLE;
    const path = behind(prefix, url);
    if (path === undefined) {
      // Probes of a container know its port, and often no more.
      return isProbePath(url) ? url : OUTSIDE;
    }
    const again = request.method === "GET" ? behind(prefix, path) : undefined;
    return again !== undefined && NAMED_BY_LOCATION.test(again) ? again : path;
  };
};

/** Whether a request is for nothing of this server. */
export const isOutside = ({ url }: { url: string }): boolean => url === OUTSIDE;

/** Tells routes the prefix, for addresses that they send. */
export const nameMountPrefix = (app: FastifyInstance, prefix: string): void => {
  app.decorate("mountPrefix", prefix);
};
