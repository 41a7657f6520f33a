import { isIP } from "node:net";

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
  /** In the form that @fastify/cors compares with: texts to be equal to, and patterns. */
  readonly patterns: readonly (string | RegExp)[];
  allows(origin: string): boolean;
}

/** Reads the list of CORS_ALLOW_ORIGINS: origins as browsers send them, `loopback`, `*`. */
export const allowedOrigins = (list: readonly string[]): AllowedOrigins => {
  const patterns = list.map((origin) => (origin === LOOPBACK ? LOOPBACK_ORIGIN : origin.replace(/\/$/, "")));
  const any = list.includes(ANY);
  return {
    any,
    patterns,
    allows: (origin) =>
      any || patterns.some((one) => (typeof one === "string" ? one === origin : one.test(origin))),
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
