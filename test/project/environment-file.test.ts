import { expect, test } from "vitest";
import { dirname } from "node:path";
import { readGraphConfig } from "../../src/project/langgraph-json.ts";
import { aProject } from "../helpers/project.ts";

const warningFor = async (env: string): Promise<string | undefined> => {
  const project = await aProject({ "langgraph.json": { graphs: { a: "./a.ts:graph" }, env } });
  const file = project.path("langgraph.json");
  return (await readGraphConfig(file)).warning?.replace(dirname(file), "");
};

test("a file of variables that is not there is told, but for .env, which a fresh checkout lacks", async () => {
  expect(await warningFor(".evn")).toBe("env names /.evn, which is not there");
  expect(await warningFor(".env")).toBeUndefined();
});
