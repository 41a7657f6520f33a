import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { parseEnv, promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { composeText } from "../../src/cli/image/texts.ts";
import type { Option } from "../../src/platform/config/option.ts";
import { OPTIONS } from "../../src/platform/config/options.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";
import { readSteps } from "../readme/document.ts";

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const linesOf = (name: string): string[] => readFileSync(path(name), "utf8").split("\n");

test("the files that the Dockerfile copies and starts exist, and .dockerignore includes them", () => {
  const copied = linesOf("Dockerfile")
    .filter((line) => line.startsWith("COPY ") && !line.includes("--from="))
    .flatMap((line) => line.split(" ").slice(1, -1));
  const [command = ""] = linesOf("Dockerfile").filter((line) => line.startsWith("CMD "));
  const entry = /"([^"]+\.js)"/.exec(command)?.[1] ?? "";
  expect(copied.length).toBeGreaterThan(4);
  expect(copied.filter((name) => !existsSync(path(name)))).toEqual([]);
  expect(existsSync(path(entry))).toBe(true);
  expect(copied).toContain(entry.split("/")[0]);
  const ignored = linesOf(".dockerignore");
  expect(ignored[0]).toBe("*");
  expect(copied.filter((name) => !ignored.some((line) => `!${name}/`.startsWith(`${line}/`)))).toEqual([]);
});

test("the TypeScript loader writes no cache on a read-only system, and works nevertheless", async () => {
  const script = `await import(${JSON.stringify(path("src/platform/lib/typescript-loader.js"))});
    const { newId } = await import(${JSON.stringify(path("src/platform/lib/ids.ts"))});
    console.log(typeof newId(), process.env.TSX_DISABLE_CACHE);`;
  const printedWith = async (TMPDIR: string) =>
    (
      await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
        env: { PATH: process.env["PATH"], TMPDIR },
      })
    ).stdout.trim();
  expect(await printedWith("/nowhere/to/write")).toBe("string 1");
  expect(await printedWith(tmpdir())).toBe("string undefined");
});

test("no secret of docker-compose.yml has a default, and its server has only the necessary rights", () => {
  const compose = linesOf("docker-compose.yml");
  const secrets = compose.filter((line) => /^ +(POSTGRES_PASSWORD|DATABASE_PASSWORD|API_KEYS):/.test(line));
  expect(secrets).toHaveLength(2);
  for (const line of secrets) expect(line).toMatch(/\$\{[A-Z_]+:\?set /);
  expect(compose.join("\n")).not.toMatch(/(PASSWORD|KEYS?):-/);
  const server = compose.slice(compose.indexOf("  threadloom:")).join("\n");
  for (const wanted of ["read_only: true", "cap_drop: [ALL]", "no-new-privileges:true"])
    expect(server).toContain(wanted);
  expect(
    linesOf("Dockerfile").filter((line) => line.startsWith("USER ") && line !== "USER root"),
  ).toHaveLength(1);
});

test("docker-compose.yml passes every secret of the server that .env may contain", () => {
  const lines = linesOf("docker-compose.yml");
  const server = lines.slice(lines.indexOf("  threadloom:"));
  const secrets = Object.values<Option<unknown>>(OPTIONS)
    .filter(({ secret }) => secret === true)
    .map(({ environment }) => environment)
    // The file names the database itself.
    .filter(([name]) => !name?.startsWith("DATABASE_"));
  expect(secrets.length).toBeGreaterThan(2);
  const isNamed = (name: string): boolean => server.some((line) => line.startsWith(`      ${name}:`));
  expect(secrets.filter((names) => !names.some(isNamed))).toEqual([]);
});

const ownCompose = linesOf("docker-compose.yml").join("\n");
const madeCompose = composeText({
  envFile: ".env",
  graphs: ["agent"],
  configFile: "langgraph.json",
  nodeVersion: "24",
  dockerfileLines: [],
  installation: { install: "", installAll: "", files: [], needsProject: false },
  readsTypesWithDevelopment: false,
  meaningless: [],
});
const composeFiles = [
  ["of this repository", ownCompose],
  ["of 'threadloom compose'", madeCompose],
] as const;

test.each(composeFiles)(
  "the compose file %s creates the role that docs/database-role.md describes",
  (_, compose) => {
    const { configs, services } = parse(compose) as {
      configs: Record<string, { content: string }>;
      services: { postgres: { configs: { source: string; target: string }[] } };
    };
    const [{ source, target } = { source: "", target: "" }] = services.postgres.configs;
    expect(target).toBe("/docker-entrypoint-initdb.d/role.sql");
    const page = linesOf("docs/database-role.md").join("\n");
    const [block] = readSteps(page, "## One role, which owns one schema", "sql");
    const lines = (configs[source]?.content ?? "").split("\n");
    expect(lines).toContain("\\getenv password DATABASE_PASSWORD");
    for (const line of block!.command.replace("'change me'", ":'password'").split("\n"))
      expect(lines).toContain(line);
  },
);

const deploying = readSteps(linesOf("docs/deploying.md").join("\n"), "## Compose", "sh").map(
  ({ command }) => command,
);
/** The lines of a text from the first with `begin` to the next with `end`, without the marks of comments. */
const stepsIn = (text: string, begin: string, end: string): string => {
  const lines = text.split("\n").map((line) => line.replace(/^# ? ?/, ""));
  const from = lines.findIndex((line) => line.includes(begin));
  return lines
    .slice(from, lines.findIndex((line, index) => index >= from && line.includes(end)) + 1)
    .join("\n");
};

test.each([
  ...composeFiles,
  ...deploying
    .filter((text) => text.includes("openssl"))
    .map((text, index) => [`on the page, ${index}`, `${text}\n${deploying.join("\n")}`] as const),
])("the steps make each secret once, however often they are repeated (%s)", async (_, text) => {
  const steps = stepsIn(text, "for name in", "done");
  const key = stepsIn(text, "API_KEY=$(", "API_KEY=$(");
  for (const before of [undefined, "", "API_KEYS=\nOPENAI_API_KEY=sk", "API_KEYS=mine,other\n"]) {
    const folder = await temporaryFolder();
    onTestFinished(() => folder.remove());
    const file = `${folder.path}/.env`;
    if (before !== undefined) await writeFile(file, before);
    const run = (script: string) => promisify(execFile)("sh", ["-euc", script], { cwd: folder.path });
    await run(steps);
    const made = await readFile(file, "utf8");
    await run(steps);
    expect(await readFile(file, "utf8")).toBe(made);
    const values = parseEnv(made);
    expect(values).toEqual({
      ...parseEnv(before ?? ""),
      DATABASE_PASSWORD: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      API_KEYS: before?.includes("mine") ? "mine,other" : (expect.stringMatching(/^[0-9a-f]{64}$/) as string),
    });
    const { stdout } = await run(`${key}\nprintf %s "$API_KEY"`);
    expect(stdout).toBe(values["API_KEYS"]?.split(",")[0]);
  }
});
