import { markedOfGraph } from "../../platform/lib/contents.ts";
import { CallerGoneError, ThreadloomError } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { AppEnvironment } from "./environment.ts";

/** The project brings its own Hono, of any version. */
interface Context {
  env: AppEnvironment;
  req: { raw: Request; method: string; path: string };
  set(key: string, value: unknown): void;
  newResponse(body: ReadableStream | null, response: Response): Response;
}

interface Hono {
  fetch(request: Request, environment: unknown, context: unknown): unknown;
  getPath: unknown;
  use(path: string, handler: (context: Context, next: () => Promise<void>) => Promise<void>): unknown;
  route(path: string, app: unknown): unknown;
  all(path: string, handler: (context: Context) => Promise<Response>): unknown;
  onError(handler: (error: Error, context: Context) => Response): unknown;
}

const METHODS = ["fetch", "use", "route", "all", "onError", "notFound", "basePath", "getPath"];

/** By its methods: `instanceof` fails for the project's own copy. */
export const isHono = (exported: unknown): exported is Hono =>
  typeof exported === "object" &&
  exported !== null &&
  METHODS.every((name) => typeof Reflect.get(exported, name) === "function");

const hidden = (): Response =>
  Response.json({ detail: "The server could not answer this request; its log says why." }, { status: 500 });

/**
 * Middleware runs around the application and the API, as in the official server. Unmatched routes reach the API;
 * `c.notFound()` does not.
 */
export const aroundHono = (app: Hono, logger: Logger): Hono => {
  const Application = app.constructor as new (options: object) => Hono;
  // `getPath` defines whether a trailing slash matters.
  const whole = new Application({ getPath: app.getPath });
  whole.onError((error, { req }) => {
    // This server's own error for a body that is too large.
    if (error instanceof ThreadloomError) throw error;
    if (error instanceof CallerGoneError) {
      logger.debug({ method: req.method, path: req.path }, "a caller has left the application of http.app");
      throw error;
    }
    if ("getResponse" in error) return (error as Error & { getResponse(): Response }).getResponse();
    logger.error(
      { err: markedOfGraph(error), method: req.method, path: req.path },
      "the application of http.app failed",
    );
    return hidden();
  });
  whole.use("*", async (context, next) => {
    if (context.env.auth !== undefined) context.set("auth", context.env.auth);
    await next();
  });
  whole.route("/", app);
  whole.all("*", async (context) => {
    const response = await context.env.api(context.req.raw);
    // Keeps headers that middleware has set.
    return context.newResponse(response.body, response);
  });
  return whole;
};
