/**
 * `npm run pictures`: takes the pictures of docs/images again, light and dark, of the console beside the three templates of `threadloom
 * new`. Check each one before you commit it.
 */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { buildConsole } from "../../console/build.js";
import { TEMPLATES, templateFiles } from "../../src/cli/new/templates.ts";
import { spawnProcess } from "../bench/server-process.ts";
import { EXECUTABLE, LAUNCH_ARGUMENTS } from "../clients/browser/chromium.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";
import { withPalette } from "./palette.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PATIENCE_MS = 60_000;
/** For animations and late parts that are not worth a condition each: a person checks the pictures. */
const SETTLED_MS = 1_500;

const QUESTION = "What is the weather in Oslo, and what is 12 * 12?";
const ANSWER = "It is sunny in Oslo, 28 °C. 12 * 12 = 144";

/** One project with the graphs of all templates. */
const makeProject = async (folder: string): Promise<string> => {
  for (const template of TEMPLATES) {
    for (const [path, text] of await templateFiles(template, "typescript")) {
      await mkdir(dirname(join(folder, template, path)), { recursive: true });
      await writeFile(join(folder, template, path), text);
    }
  }
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  const graphs = TEMPLATES.map((template) => [template, `./${template}/src/${template}.ts:graph`]);
  const config = join(folder, "langgraph.json");
  await writeFile(config, JSON.stringify({ graphs: Object.fromEntries(graphs) as object }));
  return config;
};

const messages = (page: Page) => page.getByRole("log", { name: "Messages" }).getByRole("article");
const say = async (page: Page, text: string, answer: string): Promise<void> => {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
  await messages(page).getByText(answer, { exact: true }).last().waitFor();
};
const begin = async (page: Page, address: string, graph: string): Promise<void> => {
  await page.goto(`${address}/console/#/?assistant=${graph}`);
  await page.getByRole("heading", { level: 2, name: graph }).waitFor();
};

interface Places {
  talk: string;
  research: string;
}

/** Threads of all graphs, the last of which is a conversation with two branches. Returns its place. */
const fillWith = async (page: Page, address: string): Promise<Places> => {
  const place = (): string => page.url().slice(page.url().indexOf("#"));
  const untilIdle = () => page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await begin(page, address, "research");
  await page.getByLabel("Message", { exact: true }).fill("solar heating for small houses");
  await page.keyboard.press("Enter");
  await messages(page)
    .getByText(/^Report on/)
    .waitFor();
  const research = place();
  await begin(page, address, "agent");
  await say(page, "What is 365 * 24?", "365 * 24 = 8760");
  await begin(page, address, "approval");
  await page.getByLabel("Message", { exact: true }).fill("Thank ada@example.com for her order");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "The graph waits for an answer" }).waitFor();
  await begin(page, address, "agent");
  await say(page, "Weather in Athens?", "It is sunny in Athens, 12 °C.");
  await begin(page, address, "agent");
  await say(page, "A trip to Rome: weather in Rome?", "It is sunny in Rome, 28 °C.");
  await untilIdle();
  await say(page, "What is 12 * 12?", "12 * 12 = 144");
  await untilIdle();
  // Replaces the second question by another one, which makes a branch.
  const question = messages(page).filter({ hasText: "What is 12 * 12?" });
  await question.hover();
  await question.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Edited message").fill(QUESTION);
  await page.getByRole("button", { name: "Send as a new branch" }).click();
  await messages(page).getByText(ANSWER, { exact: true }).waitFor();
  await untilIdle();
  return { talk: place(), research };
};

type Scene = (page: Page) => Promise<unknown>;

const scenes = (address: string, { talk, research }: Places) =>
  new Map<string, Scene>([
    [
      "console",
      async (page) => {
        await page.goto(`${address}/console/${talk}`);
        await messages(page).getByText(ANSWER, { exact: true }).waitFor();
        await messages(page).locator("summary").filter({ hasText: "calculate" }).last().click();
        await page
          .getByRole("log", { name: "Messages" })
          .evaluate((log: { scrollTop: number; scrollHeight: number }) => {
            log.scrollTop = log.scrollHeight;
          });
      },
    ],
    [
      "graph",
      async (page) => {
        await page.goto(`${address}/console/${research}`);
        await page.getByRole("button", { name: "More of this thread" }).click();
        await page.getByRole("menuitem", { name: "Graph" }).click();
        await page.locator('button[data-node="plan"]').filter({ hasText: "once" }).click();
        await page.getByText("Ran once").waitFor();
      },
    ],
    [
      "time-travel",
      async (page) => {
        await page.goto(`${address}/console/${talk}/history`);
        await page.getByRole("treeitem").nth(3).waitFor();
      },
    ],
    [
      "run",
      async (page) => {
        await page.goto(`${address}/console/${research}`);
        await messages(page)
          .getByRole("link", { name: /tokens/ })
          .last()
          .click();
        await page.getByRole("treegrid").waitFor();
      },
    ],
    [
      "inbox",
      async (page) => {
        await page.goto(`${address}/console/#/inbox`);
        await page.getByRole("main").getByText("ada@example.com").first().waitFor();
      },
    ],
  ]);

const takePictures = async (browser: Browser, address: string): Promise<void> => {
  const filling = await browser.newPage();
  filling.setDefaultTimeout(PATIENCE_MS);
  const places = await fillWith(filling, address);
  // The content policy of the console forbids a page to read a picture.
  await filling.goto("about:blank");
  for (const [name, show] of scenes(address, places)) {
    for (const colorScheme of ["light", "dark"] as const) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme });
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      await show(page);
      await page.waitForTimeout(SETTLED_MS);
      const picture = await withPalette(filling, await page.screenshot());
      const file = `docs/images/${name}${colorScheme === "dark" ? "-dark" : ""}.png`;
      await writeFile(join(ROOT, file), picture);
      process.stdout.write(`${file}: ${(picture.length / 1_000).toFixed(0)} KB\n`);
      await context.close();
    }
  }
};

await buildConsole();
const folder = await temporaryFolder();
const config = await makeProject(folder.path);
const server = spawnProcess(
  [
    process.execPath,
    "bin/threadloom.js",
    ...["start", "--config", config, "--port", "0", "--data", folder.dataFolder],
  ],
  { environment: { LOG_FORMAT: "json" } },
);
try {
  const [, address = ""] = await server.said(/"msg":"listening on ([^"]+)"/);
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: LAUNCH_ARGUMENTS });
  try {
    await takePictures(browser, address);
  } finally {
    await browser.close();
  }
} finally {
  await server.stop();
  await folder.remove();
}
