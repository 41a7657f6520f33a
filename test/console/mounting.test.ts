import { readFileSync } from "node:fs";
import { request as ask, createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildConsole } from "../../console/build.js";
import { launchBrowser } from "../clients/browser/chromium.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { sendRaw } from "../helpers/raw-requests.ts";
import { reasonForNoBrowser, SLOW_MS, watchPage } from "./browser.ts";

/** The console at other addresses, with parts of the API disabled, and with unusual requests. */

const graphConfigFile = fileURLToPath(new URL("../../langgraph.json", import.meta.url));
const PLACES = [
  ...readFileSync(new URL("../../console/src/shell/pages.ts", import.meta.url), "utf8").matchAll(
    /path: "\/([^"]+)"/g,
  ),
].map(([, path = ""]) => path.replaceAll(/[:?]/g, ""));
const NAMES = ["Playground", "Graph", "Assistants", "Overview", "Runs", "Queue", "Crons", "Store"];

/** A proxy that removes a prefix; paths outside the prefix do not exist. */
const startStrippingProxy = async (prefix: string, target: string) => {
  const asked: string[] = [];
  const proxy: Server = createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    if (!path.startsWith(`${prefix}/`)) return response.writeHead(404).end();
    const address = `${new URL(target).origin}${path.slice(prefix.length)}`;
    const { method, headers } = request;
    const onward = ask(address, { method, headers: { ...headers, host: new URL(target).host } }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${prefix}`,
    asked,
    async close(): Promise<void> {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
};

describe.skipIf(reasonForNoBrowser() !== undefined)("the console in Chromium", { timeout: SLOW_MS }, () => {
  let browser: Browser;
  beforeAll(async () => {
    await buildConsole();
    browser = await launchBrowser();
  }, SLOW_MS);
  afterAll(() => browser?.close());

  const open = async (address: string): Promise<{ page: Page; faults: string[] }> => {
    const page = await browser.newPage();
    const faults = watchPage(page, new URL(address).origin);
    page.on("response", (answer) => {
      if (answer.status() >= 400) faults.push(`${answer.status()}: ${answer.url()}`);
    });
    await page.goto(address);
    await page.getByRole("navigation").waitFor();
    return { page, faults };
  };
  const goThrough = async (
    page: Page,
    names: readonly string[],
    seen?: () => Promise<void>,
  ): Promise<void> => {
    for (const name of names) {
      await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
      await expect.poll(() => page.title()).toBe(`${name} – Threadloom`);
      await page.getByRole("main").getByRole("heading", { level: 1 }).first().waitFor();
      await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => undefined);
      await seen?.();
    }
  };

  test("works below a mount prefix, and behind a proxy that removes another one: pages, files and API", async () => {
    const server = await startTestServer({
      graphConfigFile,
      projectKeys: { http: { mount_prefix: "/agents/v1" } },
    });
    const proxy = await startStrippingProxy("/tools", server.url);
    try {
      expect(server.url).toMatch(/\/agents\/v1$/);
      for (const root of [server.url, `${proxy.url}/agents/v1`]) {
        // Without the slash, and with an added query.
        const { page, faults } = await open(`${root}/console?from=mail`);
        expect(new URL(page.url()).pathname).toBe(`${new URL(root).pathname}/console/`);
        await goThrough(page, NAMES);
        await page.getByRole("navigation").getByRole("link", { name: "Runs", exact: true }).click();
        await page.getByText(/^\d+ runs?$/).waitFor();
        // An address that lost its #.
        await page.goto(`${root}/console/queue/`);
        await expect.poll(() => page.title()).toBe("Queue – Threadloom");
        expect(faults).toEqual([]);
        await page.close();
      }
      expect(proxy.asked.filter((path) => !path.startsWith("/tools/agents/v1/"))).toEqual([]);
    } finally {
      await proxy.close();
      await server.close();
    }
  });

  test.each([
    ["disable_runs", ["Overview", "Runs", "Crons", "Queue"]],
    ["disable_store", ["Store"]],
    ["disable_assistants", ["Assistants"]],
    ["disable_threads", ["Playground"]],
    ["disable_meta", ["Overview", "Queue"]],
  ])(
    "says with http.%s that the server lacks this part, on the pages %j, and works otherwise",
    async (option, pages) => {
      const server = await startTestServer({ graphConfigFile, projectKeys: { http: { [option]: true } } });
      try {
        const { page, faults } = await open(`${server.url}/console/`);
        await goThrough(page, pages, () =>
          page
            .getByRole("main")
            .getByText(/This server does not offer this part of the API\./)
            .first()
            .waitFor(),
        );
        expect(faults.filter((fault) => !fault.startsWith("404: "))).toEqual([]);
        await page.close();
      } finally {
        await server.close();
      }
    },
  );
});

describe("the page at /console", () => {
  let server: TestServer;
  beforeAll(async () => {
    await buildConsole();
    server = await startTestServer();
  }, SLOW_MS);
  afterAll(() => server.close());

  test("is gone with http.disable_ui", async () => {
    const without = await startTestServer({ projectKeys: { http: { disable_ui: true } } });
    try {
      for (const path of ["/console", "/console/", "/console/sign-in.json"]) {
        expect([path, (await fetch(`${without.url}${path}`)).status]).toEqual([path, 404]);
      }
    } finally {
      await without.close();
    }
  });

  test("tells caches that its files differ by encoding, and answers HEAD like GET without a body", async () => {
    const index = await (await fetch(`${server.url}/console/`)).text();
    const script = /src="\.\/(assets\/[^"]+\.js)"/.exec(index)?.[1] ?? "no script";
    for (const path of ["", script, "icon.svg", "sign-in.json"]) {
      const get = await fetch(`${server.url}/console/${path}`);
      const head = await fetch(`${server.url}/console/${path}`, { method: "HEAD" });
      await get.arrayBuffer();
      expect([path, get.status, head.status, await head.text()]).toEqual([path, 200, 200, ""]);
      for (const { headers } of [get, head]) {
        expect([path, headers.get("vary")?.toLowerCase()]).toEqual([
          path,
          expect.stringContaining("accept-encoding"),
        ]);
        expect(headers.get("content-security-policy")).toContain("default-src 'self'");
        expect(headers.get("x-content-type-options")).toBe("nosniff");
      }
      expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
    }
    const plain = await fetch(`${server.url}/console/${script}`, {
      headers: { "accept-encoding": "identity" },
    });
    const brotli = await fetch(`${server.url}/console/${script}`, { headers: { "accept-encoding": "br" } });
    expect(brotli.headers.get("content-encoding")).toBe("br");
    expect(await brotli.text()).toBe(await plain.text());
  });

  test("redirects the address of a page without its # to that page, at every mount", async () => {
    expect(PLACES).toContain("threads/threadId/history");
    const mounted = await startTestServer({ projectKeys: { http: { mount_prefix: "/console/v1" } } });
    const proxy = await startStrippingProxy("/tools", mounted.url);
    try {
      for (const root of [server.url, mounted.url, `${proxy.url}/console/v1`]) {
        for (const [asked, place] of [
          ["runs", "runs"],
          ["runs/", "runs/"],
          ["runs?status=error&graph=a", "runs?status=error&graph=a"],
          ["threads/1/history?at=2?", "threads/1/history?at=2?"],
          ["threads/a%2Fb%20c", "threads/a%2Fb%20c"],
          ...PLACES.map((place) => [place, place]),
        ] as [string, string][]) {
          const address = `${root}/console/${asked}`;
          const answer = await fetch(address, { redirect: "manual" });
          const location = new URL(answer.headers.get("location") ?? "no-location", address);
          expect([answer.status, location.href]).toEqual([302, `${root}/console/#/${place}`]);
          expect(answer.headers.get("cache-control")).toBe("no-cache");
        }
      }
      // Neither file names nor other names that start like a page.
      for (const path of ["runs.json", "runsomething", "assets/runs", "elsewhere"])
        expect([path, (await fetch(`${server.url}/console/${path}`)).status]).toEqual([path, 404]);
    } finally {
      await proxy.close();
      await mounted.close();
    }
  });

  test("serves only its own files, for any request", async () => {
    for (const path of [
      "/console/../package.json",
      "/console/%2e%2e/package.json",
      "/console/..%2fpackage.json",
      "/console/..%5c..%5cpackage.json",
      "/console/%252e%252e%252fpackage.json",
      "/console/assets/../../../package.json",
      "/console/assets/....//....//package.json",
      "/console//etc/passwd",
      "/console/%00",
      "/console/index.html%00.js",
      "/console/%ff",
      "/console/%",
      "/console/.env",
      "/console/constructor",
      "/console/__proto__",
      `/console/${"a".repeat(10_000)}`,
      `/console/${"%2e%2e%2f".repeat(500)}etc/passwd`,
    ]) {
      const answer = await sendRaw(server.url, `GET ${path}`);
      expect([path.slice(0, 100), answer.status >= 400 && answer.status < 500]).toEqual([
        path.slice(0, 100),
        true,
      ]);
      expect(answer.body).not.toMatch(/"name": ?"threadloom"|root:|dependencies/);
      // These requests are no server errors, so none is logged.
      expect(server.lines.filter((line) => /"level":(50|60)/.test(line))).toEqual([]);
    }
  });
});
