import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readGraphConfig } from "../../../src/graphs/project/langgraph-json.ts";

const warningFor = async (env: string): Promise<string | undefined> => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-env-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "langgraph.json");
  await writeFile(file, JSON.stringify({ graphs: { a: "./a.ts:graph" }, env }));
  return (await readGraphConfig(file)).warning?.replace(folder, "");
};

test("a missing file of variables is reported, except .env, which a fresh checkout lacks", async () => {
  expect(await warningFor(".evn")).toBe("env names /.evn, which is not there");
  expect(await warningFor(".env")).toBeUndefined();
});
