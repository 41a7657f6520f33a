import { Hono } from "hono";

/** Has routes with the same paths as open routes of the API. */
export const app = new Hono();
for (const path of ["/", "/docs", "/docs/static/mine.js", "/ui/a/b", "/admin"])
  app.get(path, (c) => c.text(`mine: ${path}`));
