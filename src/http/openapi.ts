import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { serverVersion } from "../platform/lib/package-versions.ts";
import { API_KEY, signInOf, type ApiSecurity } from "./sign-in.ts";

/**
 * Allows nothing from other hosts. The plugin's policy allows an external validator, and its upgrade to https leaves
 * the page empty over plain http.
 */
const PAGE_POLICY =
  "default-src 'self'; base-uri 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; " +
  "object-src 'none'; frame-ancestors 'self'";

interface Operation {
  parameters?: { in?: string }[];
  requestBody?: unknown;
  security?: unknown[];
  responses?: Record<string, { description?: string; content?: unknown }>;
}

interface Document {
  paths?: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, unknown> };
}

/** The plugin adds each schema as input and as output. Keeps only schemas that paths refer to. */
const withoutUnusedSchemas = (document: Document): Document => {
  const schemas: Record<string, unknown> = { ...document.components?.schemas };
  for (let before = -1; before !== Object.keys(schemas).length;) {
    before = Object.keys(schemas).length;
    for (const name of Object.keys(schemas)) {
      const { [name]: _self, ...others } = schemas;
      const reference = `"#/components/schemas/${name}"`;
      if (!JSON.stringify([document.paths, others]).includes(reference)) delete schemas[name];
    }
  }
  return { ...document, components: { ...document.components, schemas } };
};

const refusal = (description: string) => ({
  description,
  content: { "application/json": { schema: { $ref: "#/components/schemas/ErrorResponse" } } },
});

/** Refusals that any route may answer before its handler is called. */
const withCommonRefusals = ({
  parameters,
  requestBody,
  security,
  responses,
}: Operation): Operation["responses"] => ({
  ...responses,
  ...(requestBody === undefined
    ? {}
    : { 400: refusal("The body is no JSON."), 413: refusal("The body is too large.") }),
  ...(security?.length === 0
    ? {}
    : { 401: refusal("No API key."), 403: refusal("An unknown API key, or one that may not do this.") }),
  ...(parameters?.some((parameter) => parameter.in === "path") === true
    ? { 404: refusal("What the path names does not exist.") }
    : {}),
  ...(requestBody === undefined && parameters === undefined
    ? {}
    : { 422: refusal("A field does not validate; the sentence names it.") }),
});

const describeAnswers = (document: Document): Document => {
  for (const path of Object.values(document.paths ?? {})) {
    for (const operation of Object.values(path)) {
      operation.responses = withCommonRefusals(operation);
      for (const [status, answer] of Object.entries(operation.responses ?? {})) {
        // The plugin's default text.
        if (answer.description === "Default Response") answer.description = STATUS_CODES[status];
      }
    }
  }
  return document;
};

const PAGE_SCRIPT = readFileSync(new URL("./docs-key.js", import.meta.url), "utf8");

const anyOf = (schemes: Record<string, unknown>): Record<string, unknown>[] =>
  Object.keys(schemes).map((name) => ({ [name]: [] }));

/**
 * Serves `/docs`, which needs neither internet nor API key, and `/openapi.json`, which needs a key (docs-key.js asks
 * for it). Register before the routes.
 */
export const describeApi = async (
  app: FastifyInstance,
  mountPrefix: string,
  { securitySchemes = API_KEY, security = anyOf(securitySchemes) }: ApiSecurity = {},
): Promise<void> => {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Threadloom",
        description: "The open, self-hosted Agent Server for LangGraph.js graphs.",
        version: serverVersion(),
      },
      components: { securitySchemes: securitySchemes as Record<string, typeof API_KEY.apiKey> },
      security: security as Record<string, string[]>[],
      ...(mountPrefix === "" ? {} : { servers: [{ url: mountPrefix }] }),
    },
    transform: jsonSchemaTransform,
    transformObject: (input) =>
      withoutUnusedSchemas(describeAnswers(jsonSchemaTransformObject(input) as Document)),
  });
  await app.register(swaggerUi, {
    routePrefix: "/docs",
    // The plugin appends the request's path.
    indexPrefix: mountPrefix,
    staticCSP: PAGE_POLICY,
    theme: {
      title: "Threadloom API",
      js: [
        {
          filename: "docs-key.js",
          content: `window.docsSignIn = ${JSON.stringify(signInOf(securitySchemes))};\n${PAGE_SCRIPT}`,
        },
      ],
    },
    uiConfig: { docExpansion: "list", defaultModelsExpandDepth: 0 },
  });
  app.get("/", { schema: { hide: true } }, (_request, reply) => reply.redirect(`${mountPrefix}/docs`));
  // Generating the 300 KB blocked the event loop for 5 ms per request.
  let text: string | undefined;
  app.get("/openapi.json", { schema: { hide: true } }, (_request, reply) => {
    text ??= JSON.stringify(app.swagger());
    return reply.type("application/json; charset=utf-8").send(text);
  });
};
