import { expect, onTestFinished, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { freshDatabase } from "../helpers/database.ts";
import { startTcpProxy } from "../helpers/tcp-proxy.ts";

test("the log says once that the database is away, and once that it is back again, after how long", async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  let proxy = await startTcpProxy(fresh.connectionString);
  const { port } = new URL(proxy.connectionString);
  const server = await startTestServer({ connectionString: proxy.connectionString, sweepSeconds: 0.1 });
  onTestFinished(async () => {
    await server.close();
    await proxy.close();
  });
  const said = (text: string) =>
    server.lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg, level }) => String(msg).includes(text) && Number(level) >= 30);

  await proxy.close();
  await eventually("it is away", () => said("the database is away").length > 0);
  const failing = Array.from({ length: 20 }, () => server.client.get("/assistants/agent"));
  expect((await Promise.all(failing)).map(({ status }) => status)).toEqual(Array(20).fill(503));
  expect(said("back again")).toEqual([]);

  proxy = await startTcpProxy(fresh.connectionString, Number(port));
  await eventually("both are back", () => said("back again").length === 2);
  expect(said("the database is back again")).toMatchObject([{ seconds: expect.any(Number) as number }]);
  expect(said("the listening connection is back again")).toHaveLength(1);
  expect(said("the database is away")).toHaveLength(1);
});
