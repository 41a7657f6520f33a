import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { apiOf, saying, textsOf } from "../helpers/api.ts";
import { commandOf } from "../helpers/command-process.ts";
import { query } from "../helpers/query.ts";
import { spawnServer, type ServerProcess } from "../helpers/server-process.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

/** What docs/operating.md says about backups of the embedded database. */
test("a server on a copy of a stopped server's data folder has its threads, and doctor names the address for pg_dump", async () => {
  const folder = await temporaryFolder();
  const copied = await temporaryFolder();
  onTestFinished(async () => {
    await folder.remove();
    await copied.remove();
  });
  const startOn = (data: string): ServerProcess => {
    const server = spawnServer(["--config", "langgraph.json", "--port", "0", "--data", data]);
    onTestFinished(() => server.kill());
    return server;
  };
  const first = startOn(folder.dataFolder);
  const api = apiOf({ url: await first.address() });
  const thread = await api.aThread();
  await api.aFinishedRun(thread, { assistant_id: "agent", input: saying("Hello") });
  first.child.kill("SIGTERM");
  expect(await first.exit()).toBe(0);

  await promisify(execFile)("cp", ["-a", folder.dataFolder, copied.dataFolder]);
  const second = startOn(copied.dataFolder);
  const { values } = await apiOf({ url: await second.address() }).state(thread);
  expect(textsOf((values as { messages: [] }).messages)[0]).toBe("Hello");

  const doctor = await commandOf(["doctor", "--json", "--data", copied.dataFolder], { cwd: "." });
  const { checks } = JSON.parse(doctor.out) as { checks: { name: string; text: string }[] };
  const { text } = checks.find(({ name }) => name === "Address")!;
  const [, address = "", file = ""] = /^(\S+) while .* is in (\S+)$/.exec(text)!;
  expect(file).toBe(join(copied.dataFolder, "postgres/cluster/password"));
  const url = new URL(address);
  url.password = (await readFile(file, "utf8")).trim();
  expect(await query({ connectionString: url.href }, "select thread_id from threadloom.threads")).toEqual([
    { thread_id: thread },
  ]);
});
