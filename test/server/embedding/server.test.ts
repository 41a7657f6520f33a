import { expect, test } from "vitest";
import { createServer } from "../../../src/server/embedding/server.ts";
import { freshDatabase } from "../../helpers/database.ts";

test(
  "a program adds routes and hooks of its own to the server, before it listens",
  { timeout: 60_000 },
  async () => {
    const database = await freshDatabase();
    const server = await createServer({
      config: "langgraph.json",
      databaseUrl: database.connectionString,
      port: 0,
      logLevel: "silent",
    });
    try {
      const asked: string[] = [];
      server.app.addHook("onRequest", async ({ url }) => void asked.push(url));
      server.app.get("/hello", async () => ({ hello: "world" }));
      const url = await server.listen();
      expect(await (await fetch(`${url}/hello`)).json()).toEqual({ hello: "world" });
      expect((await fetch(`${url}/assistants/search`, { method: "POST" })).status).toBe(200);
      expect((await server.inject("/ok")).statusCode).toBe(200);
      expect(asked).toEqual(["/hello", "/assistants/search", "/ok"]);
    } finally {
      await server.close();
      await database.drop();
    }
  },
);
