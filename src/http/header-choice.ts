import type { FastifyInstance, FastifyRequest } from "fastify";
import type { IncomingHttpHeaders } from "node:http";
import type { HeaderChoice } from "../graphs/project/http.ts";
import { KEY_PROTOCOL } from "../access/api-keys.ts";
import { boundedText } from "../platform/lib/log-fields.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { opennessOf } from "./open-routes.ts";

export type ChosenHeaders = Record<string, string>;
type ChooseHeaders = (headers: IncomingHttpHeaders) => ChosenHeaders | undefined;

/** Headers that runs get in their configuration by default, as in the hosted service. */
export const USUAL_CONFIGURABLE: HeaderChoice = { includes: ["x-*", "user-agent"], excludes: [] };

/**
 * These headers hold identities or secrets. A pattern (`x-*`, `*`) must not write them into the database or the log.
 */
const SECRETS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "x-tenant-id",
  "x-service-key",
]);

/** Browsers send a WebSocket's API key in this header; see access/api-keys.ts. */
const PROTOCOLS = "sec-websocket-protocol";

/** In characters. Node accepts 16 KiB of headers in all. */
const VALUE_AT_MOST = 8_192;

/**
 * Each part between wildcards matches where it occurs first, and never again (a lookahead does not backtrack): clients
 * choose the names, and several `.*` would take polynomial time.
 */
const wildcardsOf = (pattern: string): RegExp => {
  const parts = pattern.split("*").map((part) => part.replace(/[.^$+|]/g, "\\$&"));
  const between = parts.slice(1, -1).map((part, index) => `(?=(.*?${part}))\\${index + 1}`);
  return new RegExp(`^${parts[0]}${between.join("")}.*${parts.at(-1)}$`);
};

const matcherOf = (patterns: readonly string[]): ((name: string) => boolean) => {
  const names = new Set(patterns.filter((pattern) => !pattern.includes("*")));
  const others = patterns.filter((pattern) => pattern.includes("*")).map(wildcardsOf);
  return (name) => names.has(name) || others.some((pattern) => pattern.test(name));
};

/** Undefined if no header can match. `usual`: used if `choice` has no `includes`; excludes win. */
export const headerChooser = (
  choice: HeaderChoice | undefined,
  usual: HeaderChoice | undefined,
): ChooseHeaders | undefined => {
  const includes = choice?.includes ?? usual?.includes ?? [];
  const excludes = [...(choice?.excludes ?? []), ...(usual?.excludes ?? [])];
  const named = new Set(includes);
  const isIncluded = matcherOf(includes);
  const isExcluded = matcherOf(excludes);
  if (includes.length === 0 || excludes.includes("*")) return undefined;

  const isChosen = (name: string): boolean => {
    const isSecret = SECRETS.has(name) || name === PROTOCOLS;
    return !isExcluded(name) && (isSecret ? named.has(name) : isIncluded(name));
  };

  return (headers) => {
    let chosen: [name: string, value: string][] | undefined;
    for (const name in headers) {
      if (!isChosen(name) || name === "__proto__") continue;
      const value = headers[name];
      const text = Array.isArray(value) ? value.join(", ") : value;
      if (text === undefined || text.length > VALUE_AT_MOST) continue;
      if (name === PROTOCOLS && text.includes(KEY_PROTOCOL)) continue;
      chosen ??= [];
      chosen.push([name, text]);
    }
    return chosen && Object.fromEntries(chosen);
  };
};

export const offerConfigurableHeaders = (app: FastifyInstance, choice: HeaderChoice | undefined): void => {
  const choose = headerChooser(choice, USUAL_CONFIGURABLE);
  app.decorateRequest("configurableHeaders", function configurableHeaders(this: FastifyRequest) {
    return choose?.(this.raw.headers);
  });
};

/** In characters. */
const LOGGED_VALUE_AT_MOST = 500;
const LOGGED_PATH_AT_MOST = 500;

/**
 * Logs nothing without `http.logging_headers`, because a line costs as much as an answer. Omits the query, which may
 * hold a key.
 */
export const logRequests = (app: FastifyInstance, logger: Logger, choice: HeaderChoice | undefined): void => {
  const choose = headerChooser(choice, undefined);
  if (choose === undefined) return;
  const fieldsOf = (request: FastifyRequest): ChosenHeaders | undefined => {
    const chosen = choose(request.raw.headers);
    if (chosen === undefined) return undefined;
    return Object.fromEntries(
      Object.entries(chosen).map(([name, value]) => [name, boundedText(value, LOGGED_VALUE_AT_MOST)]),
    );
  };
  app.addHook("onResponse", (request, reply, done) => {
    // Probes come every few seconds.
    if (opennessOf(request) !== "probe") {
      const { method, originalUrl } = request;
      const path = boundedText(originalUrl.split("?")[0] ?? "", LOGGED_PATH_AT_MOST);
      const ms = Math.round(reply.elapsedTime);
      // Not `headers`, which the logger removes (platform/lib/logger.ts).
      const fields = { method, path, status: reply.statusCode, ms, request_headers: fieldsOf(request) };
      logger.info({ reqId: request.id, ...fields }, "a request was answered");
    }
    done();
  });
};
