import type { RouteOptions } from "fastify";

export const RATE_CLASSES = ["reads", "searches", "writes", "runs", "streams"] as const;
export type RateClass = (typeof RATE_CLASSES)[number];

export const CLASS_NOUNS: Readonly<Record<RateClass, string>> = {
  reads: "reading requests",
  searches: "searches",
  writes: "changing requests",
  runs: "new runs",
  streams: "new streams",
};

type Route = Pick<RouteOptions, "method" | "config" | "sse">;

export const isLong = ({ config, sse }: Route): boolean =>
  Boolean(sse) || config?.webSocket === true || config?.waits === true;

/**
 * Null: not counted. Routes set `rate` only if the class does not follow from the method: load balancers call `/ok`,
 * which must never be refused.
 */
export const rateClassOf = (route: Route): RateClass | null => {
  const { method, config } = route;
  if (config?.rate !== undefined) return config.rate;
  if (method === "OPTIONS") return null;
  if (isLong(route)) return "streams";
  if (method === "GET" || method === "HEAD") return "reads";
  return config?.isRead === true ? "searches" : "writes";
};
