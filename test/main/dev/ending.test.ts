import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { PATIENTLY } from "../../helpers/conditions.ts";
import { developed, PATIENCE, SECONDS_AT_MOST, type Developed } from "./dev-project.ts";

vi.setConfig({ testTimeout: SECONDS_AT_MOST * 1_000 });

/** SIGTERM while a change is being applied, or while the server restarts because of one. */

/** The module of the alias: it reports that it is being loaded, and waits for a file. */
const SLOW = `import { existsSync, writeFileSync } from "node:fs";
const file = (name: string): URL => new URL(name, import.meta.url);
writeFileSync(file("begun"), "");
while (!existsSync(file("go"))) await new Promise((resolve) => setTimeout(resolve, 20));
export const word: string = "slow";
writeFileSync(file("loaded"), "");
`;
const TSCONFIG = { compilerOptions: { paths: { "@/*": ["./slow/*"] } } };

/** A run is active, so the server needs time to close; the run ends when the returned file exists. */
const withRun = async (files: Record<string, unknown>): Promise<Developed & { endRun(): Promise<void> }> => {
  const dev = await developed(files, [], { BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "200" });
  const { thread_id: thread } = await dev.client.threads.create();
  const wish = dev.project.path("end-of-run");
  const { run_id: run } = await dev.client.runs.create(thread, "agent", { input: { wish } });
  await vi.waitFor(async () => {
    expect((await dev.client.runs.get(thread, run)).status).toBe("running");
  }, PATIENTLY);
  return { ...dev, endRun: () => writeFile(wish, "") };
};

test("while dev tries a change it logs nothing more about it", async () => {
  const { project, edit, server, logged, untilLogged, endRun } = await withRun({ "slow/word.ts": SLOW });
  await edit("tsconfig.json", TSCONFIG);
  await vi.waitFor(() => expect(existsSync(project.path("slow/begun"))).toBe(true), PATIENCE);
  server.child.kill("SIGTERM");
  await untilLogged("stopping; a second signal stops at once");
  await writeFile(project.path("slow/go"), "");
  await vi.waitFor(() => expect(existsSync(project.path("slow/loaded"))).toBe(true), PATIENCE);
  await endRun();
  expect(await server.exit()).toBe(0);
  expect(logged("restarting")).toEqual([]);
  expect(logged("not reloaded")).toEqual([]);
  expect(logged("stopped")).toHaveLength(1);
});

test("dev ends in order while it closes for the next start, and starts no other server", async () => {
  const { edit, server, logged, untilLogged, endRun } = await withRun({
    "slow/word.ts": 'export const word = "other";',
  });
  await edit("tsconfig.json", TSCONFIG);
  await untilLogged("restarting");
  server.child.kill("SIGTERM");
  await untilLogged("stopping; a second signal stops at once");
  await endRun();
  expect(await server.exit()).toBe(0);
  expect(logged("not everything is closed")).toEqual([]);
  expect(logged("watching the graphs")).toHaveLength(1);
});
