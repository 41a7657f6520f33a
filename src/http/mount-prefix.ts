import type { FastifyInstance } from "fastify";
import type { IncomingMessage } from "node:http";

/** Stands for every path outside: no route can have it, and nobody asks for it. */
const OUTSIDE = "//outside";

/** Probes of a container know its port, and often no more. */
const PROBE = /^\/ok\/?(?:\?|$)/;

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
 * Takes the prefix off, for Fastify's `rewriteUrl`: all behind it sees paths as if there was none. Undefined where there is
 * none, so that nothing is asked of a request.
 */
export const withoutPrefix = (prefix: string): ((request: IncomingMessage) => string) | undefined => {
  if (prefix === "") return undefined;
  return ({ method, url = "/" }) => {
    const path = behind(prefix, url);
    if (path === undefined) return PROBE.test(url) ? url : OUTSIDE;
    const again = method === "GET" ? behind(prefix, path) : undefined;
    return again !== undefined && NAMED_BY_LOCATION.test(again) ? again : path;
  };
};

/** Whether a request is for nothing of this server. */
export const isOutside = ({ url }: { url: string }): boolean => url === OUTSIDE;

/** Tells routes the prefix, for addresses that they send. */
export const nameMountPrefix = (app: FastifyInstance, prefix: string): void => {
  app.decorate("mountPrefix", prefix);
};
