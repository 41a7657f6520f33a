import { markedOfGraph } from "../../platform/lib/contents.ts";
import { createModuleLoader } from "../../graphs/modules.ts";
import { GraphLoadError } from "../../graphs/project/langgraph-json.ts";
import type { NamedExport } from "../../graphs/project/named-export.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { AppEnvironment } from "./environment.ts";
import { aroundHono, isHono } from "./hono.ts";

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
  if (file.endsWith(".py")) {
    throw new GraphLoadError(
      `${subject} is ${file}, which is Python: this server takes applications in TypeScript or JavaScript.`,
    );
  }
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
