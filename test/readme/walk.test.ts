import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OPTIONS } from "../../src/platform/config/options.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { temporaryFolder, type TemporaryFolder } from "../helpers/temporary-folder.ts";
import {
  configurationTables,
  createNormalizer,
  readSteps,
  sectionTable,
  withOutputs,
  type Step,
} from "./document.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A section of a page. */
interface Place {
  page: string;
  heading: string;
}
const WALK: Place = { page: "docs/api-walk.md", heading: "# A walk with curl" };
/** Continues in the shell of the walk. */
const CRONS: Place = { page: "docs/crons.md", heading: "# Crons" };
/** Both need a project: their own json blocks are its `langgraph.json`. */
const ORIGINS: Place = { page: "docs/access.md", heading: "## Pages of other origins" };
const INTERFACES: Place = { page: "docs/generative-ui.md", heading: "# Generative user interfaces" };
const JAVASCRIPT: Place = { page: "docs/clients.md", heading: "## JavaScript" };
const CONFIGURATION = "docs/configuration.md";
/** The server's address on the pages. */
const ADDRESS = "http://127.0.0.1:8123";
/** Precedes the exit code after each block's output; no answer contains it. */
const MARK = "\u001e";
const WALK_MS = 60_000;

/** With UPDATE_README=1 the outputs and the table in the pages are written instead of compared. */
const updating = (process.env["UPDATE_README"] ?? "") !== "";

let server: TestServer;
let project: TestServer;
let folder: TemporaryFolder;
beforeAll(async () => {
  folder = await temporaryFolder();
  server = await startTestServer({ graphConfigFile: `${ROOT}langgraph.json` });
  project = await startTestServer({
    graphConfigFile: await aProject(),
    corsAllowOrigins: [],
  });
});
afterAll(async () => {
  await Promise.all([server.close(), project.close()]);
  await folder.remove();
});

const pageOf = ({ page }: Place): Promise<string> => readFile(ROOT + page, "utf8");
const stepsOf = async (place: Place, language: string): Promise<Step[]> =>
  readSteps(await pageOf(place), place.heading, language);

/** The project that the pages describe in two sections, with one of the examples as its graph; returns its `langgraph.json`. */
const aProject = async (): Promise<string> => {
  const json = [...(await stepsOf(ORIGINS, "json")), ...(await stepsOf(INTERFACES, "json"))];
  const config = Object.assign({}, ...json.map(({ command }) => JSON.parse(command) as object)) as object;
  const [component] = await stepsOf(INTERFACES, "tsx");
  const files = {
    "langgraph.json": JSON.stringify({ ...config, graphs: { agent: `${ROOT}graphs/agent.ts:graph` } }),
    "src/ui.tsx": component?.command ?? "",
    "src/ui.css": ".weather { color: green; }",
  };
  await mkdir(join(folder.path, "src"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder.path, name), text);
  return join(folder.path, "langgraph.json");
};

/** A program's whole output in the form of the pages: with their address, without trailing spaces. */
const run = async (program: string, argv: string[], input: string, at = server): Promise<string> => {
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
  return printed.replaceAll(at.url, ADDRESS).replaceAll(/[ \t]+$/gm, "");
};

const atServer = (text: string, at = server): string => text.replaceAll(ADDRESS, at.url);

/** Runs all blocks in one shell, like a reader who pastes them one after the other. */
const walk = async (steps: readonly Step[], at = server): Promise<string[]> => {
  const script = ["exec 2>&1", ...steps.map(({ command }) => `${command}\nprintf '${MARK}%s${MARK}' $?`)];
  const printed = await run("bash", ["-c", atServer(script.join("\n"), at)], "", at);
  const parts = printed.split(MARK);
  return steps.map(({ line }, index) => {
    expect(parts[2 * index + 1], `exit code of the block at line ${line} of its page`).toBe("0");
    return (parts[2 * index] ?? "").trimEnd();
  });
};

const compare = (steps: readonly Step[], printed: readonly string[]): void => {
  const [expectedText, actualText] = [createNormalizer(), createNormalizer()];
  for (const [index, { output = "", line }] of steps.entries()) {
    const expected = expectedText(output);
    const actual = actualText(printed[index] ?? "");
    expect(actual, `the output of the block at line ${line} of its page`).toBe(expected);
  }
};

/** Compares a section's outputs, or writes them if they differ. */
const settle = async (
  place: Place,
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
    await writeFile(ROOT + place.page, withOutputs(await pageOf(place), place.heading, language, printed));
  }
};

describe("the documentation", () => {
  test(
    "shows the output of its walk with curl",
    async () => {
      const steps = await stepsOf(WALK, "sh");
      expect(steps.length).toBeGreaterThan(10);
      const crons = await stepsOf(CRONS, "sh");
      expect(crons).toHaveLength(1);
      const printed = await walk([...steps, ...crons]);
      await settle(WALK, "sh", steps, printed.slice(0, steps.length));
      await settle(CRONS, "sh", crons, printed.slice(steps.length));
    },
    WALK_MS,
  );

  test.each([
    ["what a page of another origin may do", ORIGINS],
    ["what a page gets that asks for a component", INTERFACES],
  ])("shows %s", async (_, place) => {
    const [definitions] = await stepsOf(WALK, "sh");
    const steps = (await stepsOf(place, "sh")).filter(({ output }) => output !== undefined);
    expect(steps).toHaveLength(1);
    const [, ...printed] = await walk([definitions!, ...steps], project);
    await settle(place, "sh", steps, printed);
  });

  test("shows the output of its JavaScript", async () => {
    const steps = await stepsOf(JAVASCRIPT, "js");
    expect(steps).toHaveLength(1);
    const [step] = steps;
    const printed = await run("node", ["--input-type=module", "-"], atServer(step?.command ?? ""));
    await settle(JAVASCRIPT, "js", steps, [printed.trimEnd()]);
  });

  test("lists every option once, in its group, with its names, default and meaning", async () => {
    const tables = Object.entries(configurationTables());
    let page = await readFile(ROOT + CONFIGURATION, "utf8");
    for (const [heading, expected] of tables) {
      const { table, document } = sectionTable(page, heading, updating ? expected : undefined);
      if (!updating) expect(table, heading).toBe(expected);
      page = document;
    }
    if (updating) await writeFile(ROOT + CONFIGURATION, page);
    const names = tables.flatMap(([, table]) => table.split("\n").slice(2));
    expect(names).toHaveLength(Object.keys(OPTIONS).length);
    expect(new Set(names).size).toBe(names.length);
  });
});
