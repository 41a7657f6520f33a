import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { expect, test } from "vitest";

/** Classes of two copies are not the same, and a run of the tests would show faults that no project has. */
test.each([
  "@langchain/langgraph",
  "@langchain/langgraph-checkpoint",
  "@langchain/langgraph-checkpoint-postgres",
  "@langchain/openai",
  "langchain",
])("%s uses the same LangChain, LangGraph and checkpointer as the server", (name) => {
  const own = createRequire(import.meta.url);
  const its = createRequire(own.resolve(name));
  for (const shared of ["@langchain/core/messages", "@langchain/langgraph-checkpoint"])
    expect(its.resolve(shared)).toBe(own.resolve(shared));
  if (name === "langchain")
    expect(its.resolve("@langchain/langgraph")).toBe(own.resolve("@langchain/langgraph"));
});

test("the oldest release that is tested is the first of those that a project may bring", async () => {
  const manifestIn = async (folder: string): Promise<Record<string, Record<string, string>>> =>
    JSON.parse(await readFile(new URL(`../../${folder}package.json`, import.meta.url), "utf8"));
  const { devDependencies } = await manifestIn(".ci/oldest-langgraph/");
  const { peerDependencies } = await manifestIn("");
  const oldest = devDependencies?.["@langchain/langgraph"]?.split("@").at(-1);
  expect(peerDependencies?.["@langchain/langgraph"]).toBe(`>=${oldest} <2`);
});
