import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import {
  configurationTable,
  createNormalizer,
  readSteps,
  sectionTable,
  withOutputs,
  type Step,
} from "./document.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const README = `${ROOT}README.md`;
const WALK = "## A walk with curl";
const JAVASCRIPT = "### JavaScript";
const CONFIGURATION = "## Configuration";
/** Where the README's server is. */
const ADDRESS = "http://127.0.0.1:8123";
/** Stands before the exit code behind each block's output; no answer contains it. */
const MARK = "\u001e";
const WALK_MS = 60_000;

/** With UPDATE_README=1 the outputs and the table in the README are written instead of compared. */
const updating = (process.env["UPDATE_README"] ?? "") !== "";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ graphConfigFile: `${ROOT}langgraph.json` });
});
afterAll(async () => {
  await server.close();
});

/** Everything that a program prints, as the README shows it: with its address, without space at the end of lines. */
const run = async (program: string, argv: string[], input: string): Promise<string> => {
  const child = spawn(program, argv, {
    cwd: ROOT,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"] },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (printed += text));
  }
  child.stdin.end(input);
  await once(child, "close");
  return printed.replaceAll(server.url, ADDRESS).replaceAll(/[ \t]+$/gm, "");
};

const atServer = (text: string): string => text.replaceAll(ADDRESS, server.url);

/** Runs all blocks in one shell, as a reader who pastes them one after the other does. */
const walk = async (steps: readonly Step[]): Promise<string[]> => {
  const script = ["exec 2>&1", ...steps.map(({ command }) => `${command}\nprintf '${MARK}%s${MARK}' $?`)];
  const printed = await run("bash", ["-c", atServer(script.join("\n"))], "");
  const parts = printed.split(MARK);
  return steps.map(({ line }, index) => {
    expect(parts[2 * index + 1], `exit code of the block at line ${line} of the README`).toBe("0");
    return (parts[2 * index] ?? "").trimEnd();
  });
};

const compare = (steps: readonly Step[], printed: readonly string[]): void => {
  const [expectedText, actualText] = [createNormalizer(), createNormalizer()];
  for (const [index, { output = "", line }] of steps.entries()) {
    const expected = expectedText(output);
    const actual = actualText(printed[index] ?? "");
    expect(actual, `what the block at line ${line} of the README prints`).toBe(expected);
  }
};

/** Compares a section's outputs, or writes them if they differ. */
const settle = async (
  heading: string,
  language: string,
  steps: readonly Step[],
  printed: readonly string[],
): Promise<void> => {
  try {
    compare(steps, printed);
  } catch (difference) {
    if (!updating) throw difference;
    for (const [index, { output, line }] of steps.entries()) {
      const silent = (printed[index] ?? "") === "";
      expect(output === undefined, `whether line ${line} needs a text block behind it`).toBe(silent);
    }
    const document = await readFile(README, "utf8");
    await writeFile(README, withOutputs(document, heading, language, printed));
  }
};

describe("the README", () => {
  test(
    "shows what its walk with curl prints",
    async () => {
      const steps = readSteps(await readFile(README, "utf8"), WALK, "sh");
      expect(steps.length).toBeGreaterThan(10);
      await settle(WALK, "sh", steps, await walk(steps));
    },
    WALK_MS,
  );

  test("shows what its JavaScript prints", async () => {
    const steps = readSteps(await readFile(README, "utf8"), JAVASCRIPT, "js");
    expect(steps).toHaveLength(1);
    const [step] = steps;
    const printed = await run("node", ["--input-type=module", "-"], atServer(step?.command ?? ""));
    await settle(JAVASCRIPT, "js", steps, [printed.trimEnd()]);
  });

  test("lists every option with its names, default and meaning", async () => {
    const document = await readFile(README, "utf8");
    if (updating) {
      await writeFile(README, sectionTable(document, CONFIGURATION, configurationTable()).document);
    } else expect(sectionTable(document, CONFIGURATION).table).toBe(configurationTable());
  });
});
