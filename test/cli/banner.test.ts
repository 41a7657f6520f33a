import { expect, test } from "vitest";
import { bannerText, databaseName, type BannerFacts } from "../../src/cli/banner.ts";
import { parseConfig } from "../../src/platform/config/config.ts";

const KEY = "0123456789abcdef0123456789abcdef";

const banner = (environment: Record<string, string>, facts: Partial<BannerFacts> = {}): string =>
  bannerText({
    config: parseConfig({}, environment, { terminal: true }),
    ways: (environment["API_KEYS"] ?? "") === "" ? [] : ["API keys"],
    address: "http://127.0.0.1:8123",
    embeddedFolder: "/home/me/project/.threadloom",
    hasConsole: true,
    graphs: ["agent", "approval"],
    ...facts,
  });

test("the banner names the address, the docs, the graphs and the folder of the embedded database", () => {
  const text = banner({});
  expect(text).toContain("http://127.0.0.1:8123\n");
  expect(text).toContain("http://127.0.0.1:8123/docs");
  expect(text).toContain("agent, approval");
  expect(text).toContain("embedded PostgreSQL in /home/me/project/.threadloom");
  expect(text).toContain("curl -N http://127.0.0.1:8123/runs/stream");
});

test("the banner contains neither a database's password nor an API key", () => {
  const text = banner(
    { API_KEYS: KEY, DATABASE_URL: "postgresql://me:hunter2@db.example:5432/threads" },
    { embeddedFolder: undefined },
  );
  expect(text).toContain("PostgreSQL at db.example:5432/threads");
  expect(text).toContain('-H "x-api-key: $API_KEY"');
  expect(text).not.toContain("hunter2");
  expect(text).not.toContain(KEY);
});

test("users of an Auth module are not asked for API keys", () => {
  const text = banner({}, { ways: ["auth"] });
  expect(text).toContain("Access    with the credentials of auth in langgraph.json\n");
  expect(text).toContain('-H "authorization: Bearer $TOKEN"');
  expect(text).not.toMatch(/api.key/i);
  expect(banner({}, { ways: ["API keys", "auth"] })).toContain(
    "Access    with an API key, or the credentials of auth in langgraph.json\n",
  );
});

test("an address that stands for all interfaces is printed as one that can be called", () => {
  const text = banner({ HOST: "0.0.0.0", API_KEYS: KEY }, { address: "http://0.0.0.0:8123" });
  expect(text).toContain("curl -N http://127.0.0.1:8123/");
  expect(text).toContain(
    "Address   http://0.0.0.0:8123 (every address of this machine; from here: http://127.0.0.1:8123)\n",
  );
});

test("a worker shows no example request", () => {
  expect(banner({ ROLE: "worker" })).not.toContain("curl");
});

test("a database behind a unix socket is named by its folder", () => {
  expect(databaseName("postgresql:///threads?host=/run/postgresql")).toBe("/run/postgresql/threads");
});
