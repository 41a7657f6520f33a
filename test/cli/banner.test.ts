import { expect, test } from "vitest";
import { bannerText, databaseName, type BannerFacts } from "../../src/cli/banner.ts";
import { parseConfig } from "../../src/config/config.ts";

const KEY = "0123456789abcdef0123456789abcdef";

const banner = (environment: Record<string, string>, facts: Partial<BannerFacts> = {}): string =>
  bannerText({
    config: parseConfig([], environment, { terminal: true, readText: () => "" }),
    address: "http://127.0.0.1:8123",
    embeddedFolder: "/home/me/project/.threadloom",
    graphs: ["agent", "approval"],
    ...facts,
  });

test("it names the address, the docs, the graphs and the folder of the embedded database", () => {
  const text = banner({});
  expect(text).toContain("http://127.0.0.1:8123\n");
  expect(text).toContain("http://127.0.0.1:8123/docs");
  expect(text).toContain("agent, approval");
  expect(text).toContain("embedded PostgreSQL in /home/me/project/.threadloom");
  expect(text).toContain("curl -N http://127.0.0.1:8123/runs/stream");
});

test("neither a database's password nor an API key is printed", () => {
  const text = banner(
    { API_KEYS: KEY, DATABASE_URL: "postgresql://me:hunter2@db.example:5432/threads" },
    { embeddedFolder: undefined },
  );
  expect(text).toContain("PostgreSQL at db.example:5432/threads");
  expect(text).toContain('-H "x-api-key: $API_KEY"');
  expect(text).not.toContain("hunter2");
  expect(text).not.toContain(KEY);
});

test("an address that stands for all of them is printed as one that can be called", () => {
  const text = banner({ HOST: "0.0.0.0", API_KEYS: KEY }, { address: "http://0.0.0.0:8123" });
  expect(text).toContain("curl -N http://127.0.0.1:8123/");
  expect(text).toContain(
    "Address   http://0.0.0.0:8123 (every address of this machine; from here: http://127.0.0.1:8123)\n",
  );
});

test("a worker is not offered a request to make", () => {
  expect(banner({ ROLE: "worker" })).not.toContain("curl");
});

test("a database behind a unix socket is named by its folder", () => {
  expect(databaseName("postgresql:///threads?host=/run/postgresql")).toBe("/run/postgresql/threads");
});
