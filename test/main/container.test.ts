import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { Option } from "../../src/platform/config/option.ts";
import { OPTIONS } from "../../src/platform/config/options.ts";
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
  expect(secrets).toHaveLength(3);
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
  expect(secrets.length).toBeGreaterThan(3);
  const isNamed = (name: string): boolean => server.some((line) => line.startsWith(`      ${name}:`));
  expect(secrets.filter((names) => !names.some(isNamed))).toEqual([]);
});

test("docker/make-role.sh creates the role that docs/database-role.md describes", async () => {
  const script = linesOf("docker/make-role.sh").join("\n");
  const page = linesOf("docs/database-role.md").join("\n");
  const [block] = readSteps(page, "## One role, which owns one schema", "sql");
  for (const line of block!.command.replace("'change me'", ":'password'").split("\n"))
    expect(script).toContain(line);
});
