import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { UsageError } from "../../../src/platform/domain/errors.ts";
import { createServer } from "../../../src/server/embedding/server.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";

const NO_DATABASE = "postgres://u:p@127.0.0.1:1/x";

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

test.each([
  [{ port: 99_999 }, "port must be a whole number from 0 to 65535, not '99999'."],
  [{ workers: -1 }, "workers must be auto, or a whole number from 0 to 64, not '-1'."],
])("the message for %j names the option, not a flag", async (option, message) => {
  const refused: unknown = await createServer({ databaseUrl: NO_DATABASE, ...option }).catch(
    (error: unknown) => error,
  );
  expect(refused).toMatchObject({ message });
  expect(refused).not.toBeInstanceOf(UsageError);
});

test("an empty variable counts as not set, so env of langgraph.json sets it", async () => {
  vi.stubEnv("MAX_ATTEMPTS", "3"); // the server would set it in this process
  onTestFinished(() => void vi.unstubAllEnvs());
  const folder = await temporaryFolder();
  onTestFinished(folder.remove);
  const config = join(folder.path, "langgraph.json");
  const graphs = { counter: `${resolve("test/fixtures/counter.ts")}:graph` };
  await writeFile(config, JSON.stringify({ graphs, env: { MAX_ATTEMPTS: "0" } }));
  const created = createServer({
    config,
    databaseUrl: NO_DATABASE,
    environment: { MAX_ATTEMPTS: "" },
  });
  await expect(created).rejects.toThrow("MAX_ATTEMPTS must be a whole number from 1 to 100, not '0'.");
});
