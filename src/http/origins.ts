import { isIP } from "node:net";
import type { CorsRules } from "../graphs/project/cors.ts";

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

export interface OriginsOptions {
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
export const nameOfHost = (host: string): string =>
  isIP(host) === 6
    ? host.toLowerCase()
    : host
        .toLowerCase()
        .replace(/:\d*$/, "")
        .replace(/^\[(.*)\]$/, "$1")
        .replace(/\.$/, "");

/** True for names and addresses that always resolve to this machine. */
export const isLoopbackName = (name: string): boolean =>
  name === "localhost" ||
  name.endsWith(".localhost") ||
  name === "::1" ||
  (isIP(name) === 4 && name.startsWith("127."));

/**
 * True for addresses, and for names without a dot. Public DNS does not serve such names, so no attacker can point them
 * elsewhere.
 */
export const isUnforgeableName = (name: string): boolean => isIP(name) !== 0 || /^[a-z0-9_-]+$/.test(name);
