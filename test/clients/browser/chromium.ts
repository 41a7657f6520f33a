import { accessSync, constants } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium, type Browser, type Page } from "playwright-core";

/** Debian's package; CHROMIUM sets another one. */
export const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** In a container Chromium can't create a sandbox of its own. */
export const LAUNCH_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"];

/** The reason why no page can be opened here; undefined if one can. */
export const reasonForNoBrowser = (): string | undefined => {
  try {
    accessSync(EXECUTABLE, constants.X_OK);
    return undefined;
  } catch {
    return `there is no ${EXECUTABLE}: install Chromium (Debian: apt install chromium), or name it in CHROMIUM`;
  }
};

/** Longer than any action of a page on a busy machine. */
const PATIENCE_MS = 120_000;

/** Starts Chromium. Its pages wait for minutes before a time-out: 30 s are little on a busy machine. */
export const launchBrowser = async (): Promise<Browser> => {
  const timeout = PATIENCE_MS;
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: LAUNCH_ARGUMENTS, timeout });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    return context;
  };
  return browser;
};

/** A page of `test/clients/browser/page/`, and packages that replace others in it. */
export interface PageSource {
  entry: "legacy.tsx" | "current.tsx" | "generative.tsx";
  alias?: Record<string, string>;
}

const bundle = async ({ entry, alias }: PageSource): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`./page/${entry}`, import.meta.url))],
    tsconfig: fileURLToPath(new URL("./page/tsconfig.json", import.meta.url)),
    alias,
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser",
    target: "es2022",
    define: { "process.env.NODE_ENV": '"production"' },
    // Only server code uses it.
    external: ["node:async_hooks"],
    logLevel: "silent",
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error(`esbuild made nothing of ${entry}.`);
  return file.text;
};

export interface Tab {
  page: Page;
  faults: string[];
}

export interface PageHost {
  /** Opens the page on a server, in the same browser profile as other tabs of this host. */
  open(query: { api: string; assistant: string; thread?: string; key?: string }): Promise<Tab>;
  closeTabs(): Promise<void>;
  close(): Promise<void>;
}

/** Serves the page on an origin of its own, like an app's developer: the server's CORS is part of the test. */
export const startPageHost = async (source: PageSource): Promise<PageHost> => {
  const script = await bundle(source);
  const server = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html; charset=utf-8");
    response.end(
      isScript ? script : '<!doctype html><title>Chat</title><body><script src="/page.js"></script>',
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser: Browser = await launchBrowser();
  let profile = await browser.newContext();
  return {
    async open(query) {
      const page = await profile.newPage();
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      await page.goto(`${origin}/?${new URLSearchParams(query)}`);
      return { page, faults };
    },
    async closeTabs() {
      await profile.close();
      profile = await browser.newContext();
    },
    async close() {
      await browser.close();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};
