import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const linesOf = (name: string): string[] => readFileSync(path(name), "utf8").split("\n");

test("what the Dockerfile copies and starts exists, and .dockerignore lets it in", () => {
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
  expect(copied.filter((name) => !ignored.includes(`!${name}`))).toEqual([]);
});
