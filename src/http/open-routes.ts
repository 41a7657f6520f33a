import type { FastifyInstance, FastifyRequest } from "fastify";

/** Why nobody is asked who sends a request for a route. */
export type Openness =
  /** Of a health probe, which has neither key nor name, and learns nothing. No application around the API is asked, either. */
  | "probe"
  /** Of a browser, which can send no key with what it loads by an address: what these answer is the same for everybody. */
  | "page"
  /** Of a client that has not signed in yet: it tells the same to all, versions and abilities, and nothing of what is stored. */
  | "greeting"
  /** Asks whether the request that follows it may be made; that one carries the key. */
  | "preflight";

/**
 * All routes that are answered without a key or a user, by method and pattern. A route that stands here tells strangers what it tells;
 * it is what the request has matched that counts, and never how the request spells it. What `/docs` shows, `/docs/json`, is not open:
 * the page asks for a key.
 */
export const OPEN_ROUTES: ReadonlyMap<string, Openness> = new Map([
  ["GET /ok", "probe"],
  ["GET /info", "greeting"],
  ["GET /", "page"],
  ["GET /docs", "page"],
  ["GET /docs/static/index.html", "page"],
  ["GET /docs/static/swagger-initializer.js", "page"],
  ["GET /docs/static/theme/docs-key.js", "page"],
  ["GET /docs/static/*", "page"],
  ["GET /ui/:assistant_id/:file", "page"],
  ["GET /console", "page"],
  ["GET /console/sign-in.json", "page"],
  ["GET /console/*", "page"],
  ["OPTIONS *", "preflight"],
]);

declare module "fastify" {
  interface FastifyContextConfig {
    /** The route stands in the table of open routes; set here. */
    openness?: Openness | undefined;
  }
}

const withoutSlash = (path: string): string =>
  path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;

/** Tells each route whether it is open. Register before all routes, those of plugins, too. */
export const markOpenRoutes = (app: FastifyInstance): void => {
  app.addHook("onRoute", (route) => {
    const path = withoutSlash(route.url);
    const [first, ...others] = [route.method]
      .flat()
      .map((method) => OPEN_ROUTES.get(`${method === "HEAD" ? "GET" : method} ${path}`));
    if (first === undefined || others.some((one) => one !== first)) return;
    route.config = { ...route.config, openness: first };
  });
};

/** Of the route that a request has matched; undefined for all others, and for what has none: who calls has to be known. */
export const opennessOf = ({
  is404,
  routeOptions,
}: Pick<FastifyRequest, "is404" | "routeOptions">): Openness | undefined =>
  is404 ? undefined : routeOptions.config.openness;

/** Whether a path is that of a probe, for who has to say so before it is routed. */
export const isProbePath = (url: string): boolean =>
  OPEN_ROUTES.get(`GET ${withoutSlash(url.split("?", 1)[0] ?? "")}`) === "probe";
