import type { IncomingHttpHeaders } from "node:http";
import { forbidden } from "../platform/domain/errors.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { isLoopbackName, isUnforgeableName, nameOfHost, type AllowedOrigins } from "./origins.ts";

/**
 * Who may call a server while it has no API keys. Whoever can connect may, and every web page in a browser on that
 * machine can connect:
 *
 * - with a POST of `text/plain`, for which a browser asks nobody first. CORS only keeps the page from reading the
 *   answer; the run is created. So a request that names a foreign page (Origin, Sec-Fetch-Site) is refused.
 * - under a name of its own, which it lets resolve to this machine (DNS rebinding). For the browser that is the same
 *   origin, and the page reads everything. So a request under a foreign name (Host) is refused.
 *
 * What is no browser sends neither and may say any name of loopback.
 */
export interface SiteCheck {
  /** Throws `forbidden` for a request that comes from a foreign page, or under a foreign name. */
  assertFromHere(request: SiteRequest): void;
}

export interface SiteRequest {
  method: string;
  headers: IncomingHttpHeaders;
  /** Health probes use whatever name they have; what they learn is public. */
  isProbe: boolean;
}

export interface SiteCheckOptions {
  origins: AllowedOrigins;
  /** Address or name to listen on. */
  host: string;
  /** Names that were configured; `.example.com` stands for all below it, `*` for any. */
  allowedHosts: readonly string[];
  /** Whether callers bring a key at the moment: then it doesn't matter where they come from. */
  hasKeys: () => boolean;
  logger: Logger;
}

/** Characters of a header that are given back. */
const QUOTED_AT_MOST = 100;

/** Different refusals that are told in the log. A page may make up names for ever. */
const LOGGED_AT_MOST = 20;

/** A link that somebody follows: a page of ours, which no other page can look into. A frame is none. */
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

  /** On loopback only its own names: whatever else leads here was made up by somebody. */
  const isOwnName = (name: string): boolean =>
    isLoopbackName(name) ||
    names.has(name) ||
    suffixes.some((suffix) => name.endsWith(suffix)) ||
    (!isLocal && isUnforgeableName(name));

  const isOwnPage = (origin: string, hostHeader: string | undefined): boolean =>
    hostHeader !== undefined && (origin === `http://${hostHeader}` || origin === `https://${hostHeader}`);

  const known = new Set<string>();
  /** Told in the log, too: to the author of a page its browser says no more than that the request failed. */
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
