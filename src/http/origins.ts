import { isIP } from "node:net";
import type { CorsRules } from "../graphs/project/cors.ts";

/** What stands in the list of allowed origins for every page of this machine, and for every page. */
const LOOPBACK = "loopback";
const ANY = "*";

/** A page that this machine serves itself: whoever may do that has other ways to call this server. */
const LOOPBACK_ORIGIN =
  /^https?:\/\/(?:localhost|[\w-]+(?:\.[\w-]+)*\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/** The origins whose pages may call the API. */
export interface AllowedOrigins {
  /** Every one: nothing is asked about a request's origin. */
  readonly any: boolean;
  allows(origin: string): boolean;
}

/** A key keeps strangers out whatever page they come from; without one, only pages of this machine are let in. */
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

export interface OriginsOptions {
  /** CORS_ALLOW_ORIGINS; empty if it is not set. It wins: whoever runs the server knows where its pages are. */
  named: readonly string[];
  /** `http.cors` of langgraph.json. */
  rules: Pick<CorsRules, "origins" | "originPattern"> | undefined;
  /** Asked for each request: the first key may be made while the server runs. */
  hasKeys: () => boolean;
}

/** The origins that may call a server: as its environment says, else as its langgraph.json says, else the usual ones. */
export const originsOf = ({ named, rules, hasKeys }: OriginsOptions): AllowedOrigins =>
  named.length > 0
    ? allowedOrigins(named)
    : rules?.origins === undefined
      ? usualOrigins(hasKeys)
      : allowedOrigins(rules.origins, rules.originPattern);

/** Longer than any origin that a browser sends; a pattern of an operator's own may take long over a long text. */
const ORIGIN_CHARACTERS_AT_MOST = 500;

/** Reads a list of origins: as browsers send them, `loopback`, `*`. Beside it a pattern may let in others. */
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

/** The name in a Host header: in small letters, without port, brackets and the dot of the root. An address is one, too. */
export const nameOfHost = (host: string): string =>
  isIP(host) === 6
    ? host.toLowerCase()
    : host
        .toLowerCase()
        .replace(/:\d*$/, "")
        .replace(/^\[(.*)\]$/, "$1")
        .replace(/\.$/, "");

/** True for names and addresses that lead to this very machine, wherever they are looked up. */
export const isLoopbackName = (name: string): boolean =>
  name === "localhost" ||
  name.endsWith(".localhost") ||
  name === "::1" ||
  (isIP(name) === 4 && name.startsWith("127."));

/** True for what nobody can point at another machine: an address, or a name without a dot, which no public DNS knows. */
export const isUnforgeableName = (name: string): boolean => isIP(name) !== 0 || /^[a-z0-9_-]+$/.test(name);
