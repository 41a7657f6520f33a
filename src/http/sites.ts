import type { IncomingHttpHeaders } from "node:http";
import { forbidden } from "../platform/domain/errors.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { isLoopbackName, isUnforgeableName, nameOfHost, type AllowedOrigins } from "./origins.ts";

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

export interface SiteRequest {
  method: string;
  headers: IncomingHttpHeaders;
  /** Health probes may use any name; their answer is public. */
  isProbe: boolean;
}

export interface SiteCheckOptions {
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
