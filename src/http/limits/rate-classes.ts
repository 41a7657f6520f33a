import type { RouteOptions } from "fastify";

/** Each caller has a separate limit for each class. */
export const RATE_CLASSES = ["reads", "searches", "writes", "runs", "streams"] as const;
export type RateClass = (typeof RATE_CLASSES)[number];

/** Used in "At most 600 … of one caller are taken in a minute". */
export const CLASS_NOUNS: Readonly<Record<RateClass, string>> = {
  reads: "reading requests",
  searches: "searches",
  writes: "changing requests",
  runs: "new runs",
  streams: "new streams",
};

type Route = Pick<RouteOptions, "method" | "config" | "sse">;

/** Whether a request may stay open as long as a run, or longer. */
export const isLong = ({ config, sse }: Route): boolean =>
  Boolean(sse) || config?.webSocket === true || config?.waits === true;

/**
 * The class of requests to a route; null: not counted. Routes set `rate` only where the class does not follow from the
 * method: load balancers call `/ok`, which must never be refused.
 */
export const rateClassOf = (route: Route): RateClass | null => {
  const { method, config } = route;
  if (config?.rate !== undefined) return config.rate;
  if (method === "OPTIONS") return null;
  if (isLong(route)) return "streams";
  if (method === "GET" || method === "HEAD") return "reads";
  return config?.isRead === true ? "searches" : "writes";
};
