import { Hono } from "hono";

/** Has routes where the API has some that are open to everybody. */
export const app = new Hono();
for (const path of ["/", "/docs", "/docs/static/mine.js", "/ui/a/b", "/admin"])
  app.get(path, (c) => c.text(`mine: ${path}`));
