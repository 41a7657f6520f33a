import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { startTestServer } from "../helpers/app.ts";
import { readSteps } from "./document.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = `${ROOT}docs/migrating/from-the-hosted-service.md`;

/** The output of the page's program for a move between these two. */
const move = async (from: string, to: string): Promise<string> => {
  const [program] = readSteps(await readFile(PAGE, "utf8"), "### Assistants and threads", "js");
  const child = spawn("node", ["--input-type=module", "-"], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"], FROM_URL: from, TO_URL: to },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  child.stdin.end(program?.command);
  const [code] = (await once(child, "close")) as [number];
  expect(code).toBe(0);
  return printed;
};

test("the program of 'from the hosted service' moves assistants with versions and threads with their state, once", async () => {
  const graphConfigFile = `${ROOT}langgraph.json`;
  const [source, target] = await Promise.all([
    startTestServer({ graphConfigFile }),
    startTestServer({ graphConfigFile }),
  ]);
  try {
    const [from, to] = [new Client({ apiUrl: source.url }), new Client({ apiUrl: target.url })];
    const { assistant_id: id } = await from.assistants.create({
      graphId: "agent",
      name: "French",
      context: { system_prompt: "Answer in French." },
    });
    await from.assistants.update(id, { name: "German", context: { system_prompt: "Answer in German." } });
    await from.assistants.setLatest(id, 1);
    const { thread_id: thread } = await from.threads.create({ metadata: { owner: "ann" } });
    const input = { messages: [{ role: "user", content: "What is the weather in Oslo?" }] };
    await from.runs.wait(thread, id, { input });

    expect(await move(source.url, target.url)).toBe(`assistant ${id}: 2 versions\nthread ${thread}\n`);
    const versions = await to.assistants.getVersions(id);
    expect(versions.map(({ version, name }) => [version, name])).toEqual([
      [2, "German"],
      [1, "French"],
    ]);
    expect(await to.assistants.get(id)).toMatchObject({
      version: 1,
      context: { system_prompt: "Answer in French." },
    });
    const [was, is] = await Promise.all([from, to].map((client) => client.threads.getState(thread)));
    expect(is?.values).toEqual(was?.values);
    expect(is?.next).toEqual([]);
    expect((await to.threads.get(thread)).metadata).toMatchObject({ owner: "ann" });
    const { messages } = (await to.runs.wait(thread, id, { input })) as { messages: unknown[] };
    expect(messages.length).toBeGreaterThan(4);

    expect(await move(source.url, target.url)).toBe("");
  } finally {
    await Promise.all([source.close(), target.close()]);
  }
});
