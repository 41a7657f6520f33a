import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { buildConsole } from "../../console/build.js";
import { launchBrowser } from "../clients/browser/chromium.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../helpers/app.ts";

export { reasonForNoBrowser } from "../clients/browser/chromium.ts";

/** A page of a browser is drawn, and its graph answers: 30 s are little on a machine that is busy. */
export const SLOW_MS = 300_000;

/** The console of a test server, open in Chromium. */
export interface OpenConsole {
  server: TestServer;
  browser: Browser;
  page: Page;
  /** Whatever must not happen, in words: errors that nothing caught, refusals of the content policy, requests to anywhere else. */
  faults: string[];
  /** @param place behind the #, e.g. `/runs` */
  go(place: string): Promise<void>;
  /** What axe finds wrong with what is shown, each as `rule: selectors`. */
  violations(): Promise<string[]>;
  close(): Promise<void>;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResults {
  violations: { id: string; nodes: { target: unknown[]; failureSummary?: string }[] }[];
}

/** Everything that axe knows of WCAG 2.2 A and AA, and its best practices; of what is shown at the moment. */
export const violationsIn = async (page: Page): Promise<string[]> => {
  // By the debugger, which the content policy of the page does not bind.
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] })",
  )) as AxeResults;
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ target, failureSummary = "" }) => `${String(target)} (${failureSummary})`).join(", ")}`,
  );
};

/** Notes on a page whatever must not happen in it. */
export const watchPage = (page: Page, origin: string): string[] => {
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(`not caught: ${error.message}`));
  page.on("console", (message) => {
    if (/Content.Security.Policy/i.test(message.text())) faults.push(message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(data|blob|about):/.test(url)) faults.push(`asked elsewhere: ${url}`);
  });
  return faults;
};

export interface ConsoleOptions extends TestServerOptions {
  /** In front of `/console`, as `mount_prefix` says. */
  prefix?: string;
  /** Of the browser: its size, its colours. */
  context?: BrowserContextOptions;
}

/** Builds the page if it isn't built from what is there, starts a server, and opens the page in Chromium. */
export const openConsole = async ({
  prefix = "",
  context,
  ...options
}: ConsoleOptions = {}): Promise<OpenConsole> => {
  await buildConsole();
  const server = await startTestServer(options);
  let browser: Browser | undefined;
  try {
    browser = await launchBrowser();
    const page = await (await browser.newContext(context)).newPage();
    const faults = watchPage(page, server.url);
    const address = `${server.url}${prefix}/console/`;
    const opened = browser;
    await page.goto(address);
    return {
      server,
      browser,
      page,
      faults,
      go: async (place) => {
        await page.goto(`${address}#${place}`);
      },
      violations: () => violationsIn(page),
      close: async () => {
        await opened.close();
        await server.close();
      },
    };
  } catch (error) {
    await browser?.close();
    await server.close();
    throw error;
  }
};
