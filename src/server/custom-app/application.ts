import type { AppEnvironment } from "./environment.ts";
import { markedOfGraph } from "../../platform/lib/contents.ts";
import { CallerGoneError, ThreadloomError } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { createModuleLoader } from "../../graphs/modules.ts";
import { GraphLoadError } from "../../graphs/project/langgraph-json.ts";
import type { NamedExport } from "../../graphs/project/http.ts";

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

export interface CustomApp {
  fetch(request: Request, environment: AppEnvironment): Promise<unknown>;
  /** A callable `api` gets unmatched routes. Otherwise a 404 goes on to the API. */
  readonly callsApi: boolean;
}

interface Handler {
  fetch(request: Request, environment: unknown, context: unknown): unknown;
}

const isHandler = (exported: unknown): exported is Handler =>
  (typeof exported === "object" || typeof exported === "function") &&
  exported !== null &&
  typeof (exported as Partial<Handler>).fetch === "function";

/** As in edge runtimes. */
const contextOf = (logger: Logger) => ({
  waitUntil(promise: unknown): void {
    Promise.resolve(promise).catch((error: unknown) =>
      logger.error({ err: markedOfGraph(error) }, "background work of the application of http.app failed"),
    );
  },
  passThroughOnException(): void {},
});

/**
 * Accepts Hono, or anything with `fetch(request)`.
 * @throws GraphLoadError
 */
export const loadCustomApp = async (
  { file, exportName }: NamedExport,
  logger: Logger,
): Promise<CustomApp> => {
  const subject = "'http.app' of langgraph.json";
  const entry = { id: "http.app", file, exportName, description: undefined, subject };
  const loader = await createModuleLoader([entry]);
  const exported = await (await loader.load(entry)).exported;
  if (!isHandler(exported)) {
    throw new GraphLoadError(
      `${subject} (${file}): its export '${exportName}' is not an application: it has no method 'fetch'. Export an application of ` +
        "Hono, or an object like { fetch(request) { return new Response(…) } }.",
    );
  }
  const handler: Handler = isHono(exported) ? aroundHono(exported, logger) : exported;
  const context = contextOf(logger);
  return {
    callsApi: isHono(exported),
    fetch: async (request, environment) => await handler.fetch(request, environment, context),
  };
};
