import type { FastifyInstance, FastifyRequest } from "fastify";

export type Openness =
  /** Health probes have no key and learn nothing. They bypass an application around the API. */
  | "probe"
  /** Browsers load pages and their files without a key. All callers get the same content. */
  | "page"
  /** For clients that have not signed in: versions and abilities, but no stored data. */
  | "greeting"
  /** A preflight carries no key; the request after it does. */
  | "preflight";

/**
 * All routes that need neither key nor user, by method and pattern. `/docs/json` is not open: the page asks for a key.
 */
export const OPEN_ROUTES: ReadonlyMap<string, Openness> = new Map([
  ["GET /ok", "probe"],
  ["GET /info", "greeting"],
  ["GET /.well-known/oauth-protected-resource", "greeting"],
  ["GET /.well-known/oauth-protected-resource/mcp", "greeting"],
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
    /** From `OPEN_ROUTES`; set here. */
    openness?: Openness | undefined;
  }
}

const withoutSlash = (path: string): string =>
  path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;

/** Register before all routes, including those of plugins. */
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

/** Undefined if the matched route needs authentication, or if no route matched. */
export const opennessOf = ({
  is404,
  routeOptions,
}: Pick<FastifyRequest, "is404" | "routeOptions">): Openness | undefined =>
  is404 ? undefined : routeOptions.config.openness;

/** For a path that is not routed yet. */
export const isProbePath = (url: string): boolean =>
  OPEN_ROUTES.get(`GET ${withoutSlash(url.split("?", 1)[0] ?? "")}`) === "probe";
