import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { jsonSchemaTransform } from "fastify-type-provider-zod";

/** Serves `/docs` and `/openapi.json`, made from the zod schemas that validate. Register before the routes. */
export const describeApi = async (app: FastifyInstance): Promise<void> => {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Threadloom",
        description: "The open, self-hosted Agent Server for LangGraph.js graphs.",
        version: "0.1.0",
      },
      components: {
        securitySchemes: { apiKey: { type: "apiKey", in: "header", name: "X-Api-Key" } },
      },
      security: [{ apiKey: [] }],
    },
    transform: jsonSchemaTransform,
  });
  await app.register(swaggerUi, { routePrefix: "/docs" });
  app.get("/openapi.json", { schema: { hide: true } }, async () => app.swagger());
};
