import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const PACKAGES = fileURLToPath(new URL("../../../node_modules", import.meta.url));

/** A project with packages and the given files, deleted after the test; returns its folder. */
export const aProject = async (files: Record<string, string>): Promise<string> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "project-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "node_modules"));
  for (const name of ["@langchain", "@types", "zod"])
    await symlink(join(PACKAGES, name), join(folder, "node_modules", name));
  for (const [name, text] of Object.entries(files)) {
    const file = join(folder, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  return folder;
};

export const SCHEMA_PROCESS = new URL("../../../src/server/app/schema-process-entry.js", import.meta.url);

/** The text of a module whose graph has the key `value`. */
export const graphText = (type: string): string => `
import { Annotation, START, StateGraph } from "@langchain/langgraph";
export const graph = new StateGraph(Annotation.Root({ value: Annotation<${type}>() }))
  .addNode("work", () => ({}))
  .addEdge(START, "work")
  .compile();
`;
