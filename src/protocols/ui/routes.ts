import { z } from "zod";
import { errorAnswer, storableText } from "../../platform/domain/json-schemas.ts";
import { addressFor } from "../../http/public-address.ts";
import { malformed } from "../../platform/domain/errors.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import type { UiService } from "./service.ts";

const uiPath = z.object({ assistant_id: z.string().min(1) });
const uiFilePath = z.object({ assistant_id: z.string().min(1), file: z.string().min(1) });

const uiBody = z.object({ name: storableText.min(1).max(1_000).describe("The name of a component.") });

const tags = ["UI"];

const fileText = z.custom<Buffer>().meta({ type: "string" });

const FOR_EVER = "public, max-age=31536000, immutable";

export const createUiRoutes =
  (service: UiService): RoutePlugin =>
  async (app) => {
    app.post(
      "/ui/:assistant_id",
      {
        config: { isRead: true },
        schema: {
          tags,
          summary: "Get the HTML that shows a component in a page",
          params: uiPath,
          body: uiBody,
          response: {
            200: { description: "A fragment", content: { "text/html": { schema: z.string() } } },
            404: errorAnswer,
          },
        },
      },
      async (request, reply) => {
        const address = addressFor(request.headers);
        if (address === undefined)
          throw malformed("The request has no Host that a page could load files from.");
        const fragment = await service.fragment(request.caller, request.params.assistant_id, {
          component: request.body.name,
          address: `${address}${app.mountPrefix}`,
        });
        return await reply.type("text/html; charset=utf-8").send(fragment);
      },
    );

    app.get(
      "/ui/:assistant_id/:file",
      {
        schema: {
          tags,
          summary: "Get a script or styles of components",
          security: [],
          params: uiFilePath,
          response: {
            200: { description: "The file", content: { "text/javascript": { schema: fileText } } },
            404: errorAnswer,
          },
        },
      },
      async (request, reply) => {
        const { contents, contentType } = await service.file(
          request.params.assistant_id,
          request.params.file,
        );
        return await reply
          .headers({
            "cache-control": FOR_EVER,
            // For pages that require this header of everything they load.
            "cross-origin-resource-policy": "cross-origin",
          })
          .type(contentType)
          .send(contents);
      },
    );
  };
