import type { FastifyInstance } from "fastify";
import { answerUnknownRoute } from "./errors.ts";

/** Of a route's path: `::` is a colon, `:name` a segment, `*` anything. */
const PARTS = /::|:\w+|\*|[^:*]+/g;

const patternOf = (path: string): RegExp => {
  const parts = (path.match(PARTS) ?? []).map((part) => {
    if (part === "::") return ":";
    if (part === "*") return ".*";
    return part.startsWith(":") ? "[^/]+" : part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("").replace(/\/$/, "")}/?$`);
};

/**
 * Answers 405 if only the method of a request is wrong, and 404 if the path is. Register before the routes: the router
 * does not tell which methods a path has.
 */
export const answerOtherMethods = (app: FastifyInstance): void => {
  const methodsOf = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    // CORS answers preflights of any path.
    if (url === "*") return;
    const methods = methodsOf.get(url) ?? new Set();
    methodsOf.set(url, methods);
    for (const each of [method].flat()) methods.add(each.toUpperCase());
  });
  let patterns: { pattern: RegExp; methods: Set<string> }[] | undefined;
  app.setNotFoundHandler((request, reply) => {
    patterns ??= [...methodsOf].map(([path, methods]) => ({ pattern: patternOf(path), methods }));
    const [path = ""] = request.url.split("?");
    const matching = patterns.filter(({ pattern }) => pattern.test(path));
    const methods = new Set(matching.flatMap((each) => [...each.methods]));
    // The route itself found nothing.
    if (methods.has(request.method)) methods.clear();
    answerUnknownRoute(request, reply, [...methods].sort());
  });
};
