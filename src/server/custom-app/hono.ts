import { ofGraph } from "../../platform/lib/contents.ts";
import { CallerGoneError, ThreadloomError } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { AppEnvironment } from "./environment.ts";

/** As much of Hono's context as is needed here. The project brings a Hono of its own, of whatever version. */
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

/** By what it can do: `instanceof` does not know the project's own copy. */
export const isHono = (exported: unknown): exported is Hono =>
  typeof exported === "object" &&
  exported !== null &&
  METHODS.every((name) => typeof Reflect.get(exported, name) === "function");

const hidden = (): Response =>
  Response.json({ detail: "The server could not answer this request; its log says why." }, { status: 500 });

/**
 * The application as the first part of a larger one, whose last part is the API: so its middleware is around both, and what
 * none of its routes answers goes on to the API. The official server mounts it the same way. What an application says to be not
 * found (`c.notFound()`) is that, and goes to no API. Made by the application's own class.
 */
export const aroundHono = (app: Hono, logger: Logger): Hono => {
  const Application = app.constructor as new (options: object) => Hono;
  // With it comes whether a slash at the end of a path matters.
  const whole = new Application({ getPath: app.getPath });
  whole.onError((error, { req }) => {
    // Ours: a body that is larger than what is taken.
    if (error instanceof ThreadloomError) throw error;
    if (error instanceof CallerGoneError) {
      logger.debug({ method: req.method, path: req.path }, "a caller has left the application of http.app");
      throw error;
    }
    if ("getResponse" in error) return (error as Error & { getResponse(): Response }).getResponse();
    logger.error(
      { err: ofGraph(error), method: req.method, path: req.path },
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
    // With the headers that middleware has set so far.
    return context.newResponse(response.body, response);
  });
  return whole;
};
