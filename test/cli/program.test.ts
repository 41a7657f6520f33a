import { expect, test } from "vitest";
import { createProgram } from "../../src/cli/program.ts";
import type { Options } from "../../src/platform/config/option.ts";
import { OPTIONS } from "../../src/platform/config/options.ts";
import { runProgram } from "../../src/cli/run-command.ts";
import { serverVersion } from "../../src/platform/lib/package-versions.ts";

const within = async (...argv: string[]): Promise<{ code: number; out: string; stderr: string }> => {
  let [out, stderr] = ["", ""];
  const surroundings = {
    environment: {},
    write: (text: string): void => void (out += text),
    note: (text: string): void => void (stderr += text),
    terminal: false,
    canAsk: false,
    unread: new AbortController().signal,
    stopping: () => new AbortController().signal,
  };
  const code = await runProgram(await createProgram(argv, surroundings), { argv, ...surroundings });
  return { code, out, stderr };
};

test("without a command the help is printed, which names all commands", async () => {
  const bare = await within();
  expect([bare.code, bare.stderr]).toEqual([0, ""]);
  for (const name of [
    "start",
    "doctor",
    "keys",
    "migrate",
    "import",
    "webhooks",
    "encryption",
    "openapi",
    "runs",
    "threads",
    "schemas",
  ])
    expect(bare.out).toMatch(new RegExp(`\n  ${name} .*[A-Z].*\\.`));
  expect(bare.out).toContain("Examples:");
  expect(await within("--help")).toEqual(bare);
});

test("the version is that of the package", async () => {
  expect(await within("--version")).toEqual({ code: 0, out: `${serverVersion()}\n`, stderr: "" });
});

test.each(["start", "dev"])("%s prints the version, too", async (name) => {
  for (const flag of ["--version", "-v"])
    expect(await within(name, flag)).toEqual({ code: 0, out: `${serverVersion()}\n`, stderr: "" });
});

test("an unknown command causes an error that names the most similar one", async () => {
  const { code, out, stderr } = await within("strat");
  expect([code, out]).toEqual([2, ""]);
  expect(stderr).toMatch(/^threadloom: unknown command 'strat'\n\(Did you mean start\?\)\n/);
});

test("an error about options without a command names the help with the options", async () => {
  const { code, stderr } = await within("--port", "8124");
  expect(code).toBe(2);
  expect(stderr).toContain("Options follow their command: threadloom start --port\n");
});

test("the help of dev has its own options and those of start, with its own defaults, with both ways to request it", async () => {
  const { out } = await within("help", "dev");
  expect(out).toContain("--no-open");
  expect(out).toContain("  -p, --port <value> ");
  expect(out.replace(/\s+/g, " ")).toMatch(/--workers <value> [^[]* Default: 1 \[WORKERS\]/);
  expect((await within("dev", "--help")).out).toBe(out);
});

test("the help of the server's own command lists its options, and refers to the page of the others", async () => {
  const { code, out } = await within("help", "start");
  expect(code).toBe(0);
  expect(out).toContain("Usage: threadloom start [options]");
  for (const { flag, description } of Object.values(OPTIONS as Options)) {
    if (flag === undefined) continue;
    expect(out).toContain(`--${flag}`);
    expect(out.replace(/\s+/g, " ")).toContain(description);
  }
  expect(out).not.toContain("RATE_LIMIT_REQUESTS");
  expect(out).toContain("docs/configuration.md");
});

test.each([
  "new",
  "doctor",
  "keys",
  "migrate",
  "import",
  "webhooks",
  "encryption",
  "openapi",
  "runs",
  "threads",
  "schemas",
])("the help of %s has examples and explains its exit codes, with both ways to request it", async (name) => {
  const asked = await within(name, "--help");
  expect([asked.code, asked.stderr]).toEqual([0, ""]);
  expect(asked.out).toContain(`$ threadloom ${name}`);
  expect(asked.out).toContain("Exit codes: 0 done");
  expect(asked.out).toContain(`Usage: threadloom ${name} `);
  expect((await within("help", name)).out).toBe(asked.out);
});

test.each([
  [["import"], "threadloom import: required option '--from <url>' not specified\n"],
  [
    ["import", "--from", "x", "--frm", "y"],
    "threadloom import: unknown option '--frm'\n(Did you mean --from?)\n",
  ],
  [["keys", "lst"], "threadloom keys: unknown command 'lst'\n(Did you mean list?)\n"],
])("%j is wrong usage, with the reason", async (argv, sentence) => {
  expect(await within(...argv)).toEqual({ code: 2, out: "", stderr: sentence });
});

test("the help of a nested command names its required arguments", async () => {
  const asked = await within("help", "keys", "create");
  expect([asked.code, asked.stderr]).toEqual([0, ""]);
  expect(asked.out).toContain("Usage: threadloom keys create");
  for (const flag of ["--name", "--scopes"])
    expect(asked.out.replace(/\s+/g, " ")).toMatch(new RegExp(`${flag} <\\w+> [^-]*\\(required\\)`));
  expect((await within("keys", "create", "--help")).out).toBe(asked.out);
});

test.each([
  [["runs", "list", "--url", "nowhere"], "--url must be an address"],
  [["doctor", "--port", "abc"], "--port must be a whole number"],
  [["import", "--from", "mysql://x"], "--from must be a URL like postgresql:"],
  [["migrate", "--database-schema", "A b"], "--database-schema must be a name of at most 40"],
  [["keys", "list", "--database-url", "nowhere"], "--database-url must be"],
])("wrong usage exits with 2: %j", async (argv, sentence) => {
  const { code, stderr } = await within(...argv);
  expect(stderr).toContain(sentence);
  expect(code).toBe(2);
});
