import type { RouteOptions } from "fastify";

/** What requests are counted as: each caller has so many of each class. */
export const RATE_CLASSES = ["reads", "searches", "writes", "runs", "streams"] as const;
export type RateClass = (typeof RATE_CLASSES)[number];

/** The end of "At most 600 … of one caller are taken in a minute". */
export const CLASS_NOUNS: Readonly<Record<RateClass, string>> = {
  reads: "reading requests",
  searches: "searches",
  writes: "changing requests",
  runs: "new runs",
  streams: "new streams",
};

type Route = Pick<RouteOptions, "method" | "config" | "sse">;

/** Whether it may stay open for as long as a run takes, or longer. */
export const isLong = ({ config, sse }: Route): boolean =>
  Boolean(sse) || config?.webSocket === true || config?.waits === true;

/**
 * What a request to this route counts as; null: nothing. A route says so only where it does not follow: `/ok` is asked by
 * balancers, which never may be refused, and a preflight is no request of its own.
 */
export const rateClassOf = (route: Route): RateClass | null => {
  const { method, config } = route;
  if (config?.rate !== undefined) return config.rate;
  if (method === "OPTIONS") return null;
  if (isLong(route)) return "streams";
  if (method === "GET" || method === "HEAD") return "reads";
  return config?.isRead === true ? "searches" : "writes";
};
