import { isIP } from "node:net";
import type { CorsRules } from "../graphs/project/http.ts";
import type { IncomingHttpHeaders } from "node:http";
import { forbidden } from "../platform/domain/errors.ts";
import type { Logger } from "../platform/lib/logger.ts";
import type { FastifyInstance } from "fastify";

/** Entries of the list that allow all pages of this machine, and all pages. */
const LOOPBACK = "loopback";
const ANY = "*";

/** Pages that this machine serves. Their authors could call this server anyway. */
const LOOPBACK_ORIGIN =
  /^https?:\/\/(?:localhost|[\w-]+(?:\.[\w-]+)*\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

export interface AllowedOrigins {
  /** All origins are allowed. */
  readonly any: boolean;
  allows(origin: string): boolean;
}

/** With keys, any page may call the API. Without keys, only pages of this machine may. */
const usualOrigins = (hasKeys: () => boolean): AllowedOrigins => {
  const [withKeys, without] = [allowedOrigins([ANY]), allowedOrigins([LOOPBACK])];
  const now = (): AllowedOrigins => (hasKeys() ? withKeys : without);
  return {
    get any() {
      return now().any;
    },
    allows: (origin) => now().allows(origin),
  };
};

interface OriginsOptions {
  /** CORS_ALLOW_ORIGINS; empty if not set. It takes precedence over langgraph.json. */
  named: readonly string[];
  /** `http.cors` of langgraph.json. */
  rules: Pick<CorsRules, "origins" | "originPattern"> | undefined;
  /** Called for each request, because the first key may be created while the server runs. */
  hasKeys: () => boolean;
}

export const originsOf = ({ named, rules, hasKeys }: OriginsOptions): AllowedOrigins =>
  named.length > 0
    ? allowedOrigins(named)
    : rules?.origins === undefined
      ? usualOrigins(hasKeys)
      : allowedOrigins(rules.origins, rules.originPattern);

/** Longer than any origin of a browser. An operator's regular expression may be slow on long texts. */
const ORIGIN_CHARACTERS_AT_MOST = 500;

/** Accepts origins as browsers send them, `loopback` and `*`. `pattern` allows further origins. */
export const allowedOrigins = (list: readonly string[], pattern?: RegExp): AllowedOrigins => {
  const patterns = [
    ...list.map((origin) => (origin === LOOPBACK ? LOOPBACK_ORIGIN : origin.replace(/\/$/, ""))),
    ...(pattern === undefined ? [] : [pattern]),
  ];
  const any = list.includes(ANY);
  return {
    any,
    allows: (origin) =>
      any ||
      (origin.length <= ORIGIN_CHARACTERS_AT_MOST &&
        patterns.some((one) => (typeof one === "string" ? one === origin : one.test(origin)))),
  };
};

/** The name or address in a Host header: lower case, without port, brackets and trailing dot. */
const nameOfHost = (host: string): string =>
  isIP(host) === 6
    ? host.toLowerCase()
    : host
        .toLowerCase()
        .replace(/:\d*$/, "")
        .replace(/^\[(.*)\]$/, "$1")
        .replace(/\.$/, "");

/** True for names and addresses that always resolve to this machine. */
const isLoopbackName = (name: string): boolean =>
  name === "localhost" ||
  name.endsWith(".localhost") ||
  name === "::1" ||
  (isIP(name) === 4 && name.startsWith("127."));

/**
 * True for addresses, and for names without a dot. Public DNS does not serve such names, so no attacker can point them
 * elsewhere.
 */
const isUnforgeableName = (name: string): boolean => isIP(name) !== 0 || /^[a-z0-9_-]+$/.test(name);

/**
 * Protects a server without API keys from web pages in a browser that can reach the server:
 *
 * - A page may POST `text/plain` without a preflight, and CORS hides only the answer. So requests that name a foreign
 * page (Origin, Sec-Fetch-Site) are refused.
 * - A page may point its own name at this machine (DNS rebinding). So requests under a foreign name (Host) are refused.
 */
export interface SiteCheck {
  /** Throws `forbidden`. */
  assertFromHere(request: SiteRequest): void;
}

interface SiteRequest {
  method: string;
  headers: IncomingHttpHeaders;
  /** Health probes may use any name; their answer is public. */
  isProbe: boolean;
}

interface SiteCheckOptions {
  origins: AllowedOrigins;
  /** Address or name to listen on. */
  host: string;
  /** Configured names; `.example.com` allows all names below it, `*` any name. */
  allowedHosts: readonly string[];
  /** Whether callers need a key now. If they do, any site may call. */
  hasKeys: () => boolean;
  logger: Logger;
}

/** In characters. */
const QUOTED_AT_MOST = 100;

/** A page can make up endless names. */
const LOGGED_AT_MOST = 20;

/** A followed link opens a page of this server, which other pages cannot read. A frame does not count. */
const isFollowedLink = (method: string, headers: IncomingHttpHeaders): boolean =>
  method === "GET" &&
  headers["sec-fetch-mode"] === "navigate" &&
  headers["sec-fetch-dest"] === "document" &&
  headers.origin === undefined;

export const createSiteCheck = ({
  origins,
  host,
  allowedHosts,
  hasKeys,
  logger,
}: SiteCheckOptions): SiteCheck => {
  const anyHost = allowedHosts.includes("*");
  const names = new Set([nameOfHost(host), ...allowedHosts.map((name) => nameOfHost(name))]);
  const suffixes = [...names].filter((name) => name.startsWith("."));
  const isLocal = isLoopbackName(nameOfHost(host));

  /** A server on loopback has only loopback names: an attacker may have made up any other name. */
  const isOwnName = (name: string): boolean =>
    isLoopbackName(name) ||
    names.has(name) ||
    suffixes.some((suffix) => name.endsWith(suffix)) ||
    (!isLocal && isUnforgeableName(name));

  const isOwnPage = (origin: string, hostHeader: string | undefined): boolean =>
    hostHeader !== undefined && (origin === `http://${hostHeader}` || origin === `https://${hostHeader}`);

  const known = new Set<string>();
  /** Also logged, because browsers hide the refusal from the page's author. */
  const refusal = (sentence: string): Error => {
    if (known.size < LOGGED_AT_MOST && !known.has(sentence)) {
      known.add(sentence);
      logger.warn({ text: sentence }, "a request was refused");
    }
    return forbidden(sentence);
  };

  return {
    assertFromHere({ method, headers, isProbe }) {
      if (hasKeys() || isProbe) return;
      if (!anyHost && headers.host !== undefined && !isOwnName(nameOfHost(headers.host))) {
        throw refusal(
          `This server has no API keys and is not known by the name '${headers.host.slice(0, QUOTED_AT_MOST)}': ` +
            "add it to ALLOWED_HOSTS, or set API_KEYS.",
        );
      }
      if (origins.any) return;
      const { origin } = headers;
      const isForeign =
        origin === undefined
          ? headers["sec-fetch-site"] === "cross-site" && !isFollowedLink(method, headers)
          : !origins.allows(origin) && !isOwnPage(origin, headers.host);
      if (isForeign) {
        const page = origin === undefined ? "another site" : `'${origin.slice(0, QUOTED_AT_MOST)}'`;
        throw refusal(
          `Pages of ${page} may not call this server, which has no API keys: ` +
            "add their origin to CORS_ALLOW_ORIGINS, or set API_KEYS.",
        );
      }
    },
  };
};

/** Marks a webhook's request to the server that sends it. A client that sends the header is only refused itself. */
export const OWN_WEBHOOK_HEADER = "threadloom-own-webhook";

/**
 * The server's own requests bypass a proxy that checks access, and callers choose their paths. Routes of the project's
 * own application stay allowed.
 */
export const refuseOwnWebhooks = (app: FastifyInstance): void => {
  app.addHook("onRequest", (request, _reply, done) => {
    const isRefused = !request.is404 && request.headers[OWN_WEBHOOK_HEADER] !== undefined;
    done(isRefused ? forbidden("Webhooks may not name routes of the API here.") : undefined);
  });
};
