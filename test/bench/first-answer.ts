import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { EXECUTABLE, LAUNCH_ARGUMENTS } from "../clients/browser/chromium.ts";
import { median, now } from "./load.ts";
import type { Scenario } from "./scenario.ts";
import { spawnProcess } from "./server-process.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);
const PATIENCE_MS = 60_000;

/** The waiting times of a new user of Threadloom, in order; in milliseconds. */
interface Waits {
  version: number;
  made: number;
  started: number;
  answered: number;
}

/** The first text of an answer in the console, while it is streamed. */
const untilAnswered = async (address: string): Promise<void> => {
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: LAUNCH_ARGUMENTS });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(`${address}/console`);
    await page.getByLabel("Message", { exact: true }).fill("What is 6 * 7?");
    await page.keyboard.press("Enter");
    await page.getByRole("log").locator("[data-type=ai]").filter({ hasText: /\S/ }).first().waitFor();
  } finally {
    await browser.close();
  }
};

/** @param packed the package, instead of one in a registry */
const walk = async (packed: string): Promise<Waits> => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-bench-new-"));
  try {
    const begun = now();
    // Equals `npx threadloom new my-agent` for a package that is in no registry.
    const argv = ["exec", "--yes", `--package=${packed}`, "--", "threadloom", "new", "my-agent", "--yes"];
    await run("npm", [...argv, "--threadloom", packed], { cwd: folder });
    const made = now();
    const cwd = join(folder, "my-agent");
    // Not with `npm run`, which passes signals to a shell, and leaves the server running.
    const command = join(cwd, "node_modules/threadloom/bin/threadloom.js");
    const versions: number[] = [];
    for (let count = 0; count < 5; count += 1) {
      const asked = now();
      await run(process.execPath, [command, "--version"], { cwd });
      versions.push(now() - asked);
    }
    const begunAgain = now();
    const child = spawnProcess([process.execPath, command, "dev", "--port", "0", "--no-open"], {
      cwd,
      environment: { LOG_FORMAT: "json", LOG_LEVEL: "info" },
    });
    try {
      const address = (await child.said(/"msg":"listening on ([^"]+)"/))[1]!;
      const started = now();
      await untilAnswered(address);
      const answered = now() - started;
      return { version: median(versions), made: made - begun, started: started - begunAgain, answered };
    } finally {
      await child.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
};

export const firstAnswer: Scenario = {
  name: "first-answer",
  about: "from an empty folder to the first words of an answer in the console, by a driven Chromium",
  onRequest: true,
  async run(bench) {
    const folder = await mkdtemp(join(tmpdir(), "threadloom-bench-pack-"));
    try {
      const packing = await run("npm", ["pack", "--json", "--pack-destination", folder], { cwd: ROOT });
      const json = packing.stdout.slice(packing.stdout.indexOf("["));
      const [{ filename }] = JSON.parse(json) as [{ filename: string }];
      const packed = join(folder, filename);
      bench.progress("first-answer: once, so that npm has everything in its cache");
      await walk(packed);
      const walks: Waits[] = [];
      for (let repeat = 0; repeat < bench.repeats; repeat += 1) walks.push(await walk(packed));
      const add = (label: string, wanted: string, values: number[]): void =>
        bench.figures.add(
          "first-answer",
          { label, unit: "s", better: "less", wanted },
          "threadloom",
          median(values) / 1_000,
        );
      add(
        "npx threadloom new, with its packages",
        "",
        walks.map(({ made }) => made),
      );
      add(
        "threadloom dev, until it listens",
        "",
        walks.map(({ started }) => started),
      );
      add(
        "the console, until words of an answer",
        "",
        walks.map(({ answered }) => answered),
      );
      add(
        "threadloom --version",
        "< 0.3",
        walks.map(({ version }) => version),
      );
      add(
        "all",
        "< 30",
        walks.map(({ made, started, answered }) => made + started + answered),
      );
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  },
};
