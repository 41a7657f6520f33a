import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { buildConsole } from "../../console/build.js";
import { launchBrowser } from "../clients/browser/chromium.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../helpers/app.ts";

export { reasonForNoBrowser } from "../clients/browser/chromium.ts";

/** A browser draws a page, and its graph answers: 30 s are little on a busy machine. */
export const SLOW_MS = 300_000;

/** The console of a test server, open in Chromium. */
export interface OpenConsole {
  server: TestServer;
  browser: Browser;
  page: Page;
  /** Forbidden events, in words: uncaught errors, refusals of the content policy, requests to other hosts. */
  faults: string[];
  /** @param place after the #, e.g. `/runs` */
  go(place: string): Promise<void>;
  /** The violations that axe finds on the page, each as `rule: selectors`. */
  violations(): Promise<string[]>;
  close(): Promise<void>;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResults {
  violations: { id: string; nodes: { target: unknown[]; failureSummary?: string }[] }[];
}

/** All of axe's rules of WCAG 2.2 A and AA, and its best practices, for the current page. */
export const violationsIn = async (page: Page): Promise<string[]> => {
  // Uses the debugger, to which the page's content policy does not apply.
  await page.evaluate(AXE);
  // Halfway between two themes a colour has another contrast.
  await page.evaluate(
    "Promise.allSettled(document.getAnimations().filter((one) => one instanceof CSSTransition).map((one) => one.finished))",
  );
  const { violations } = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] })",
  )) as AxeResults;
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ target, failureSummary = "" }) => `${String(target)} (${failureSummary})`).join(", ")}`,
  );
};

/** Records all forbidden events of a page. */
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
  /** The path before `/console`, from `mount_prefix`. */
  prefix?: string;
  /** Options of the browser: its size, its colours. */
  context?: BrowserContextOptions;
}

/** Builds the page if it is outdated, starts a server, and opens the page in Chromium. */
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
