import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { createProgram } from "../../src/cli/program.ts";
import { PROJECT_VARIABLES } from "../../src/platform/config/project-keys.ts";
import { OPTIONS } from "../../src/platform/config/options.ts";
import { GRAPH_KEYS, LANGGRAPH_JSON_KEYS, type Keys } from "../../src/graphs/project/known-keys.ts";
import { anchorsOf, codeOf, decisionPages, linksOf, proseOf, sourceText, userPages } from "./pages.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const pages = userPages();
const decisions = decisionPages();
const textOf = (path: string): string => pages.find((page) => page.path === path)?.text ?? "";

describe("the README", () => {
  test("is one screen: 80 lines at most", () => {
    expect(textOf("README.md").trimEnd().split("\n").length).toBeLessThanOrEqual(80);
  });

  test("shows two charts, with the texts of the page on benchmarks", () => {
    const charts = (path: string): string[] =>
      [...textOf(path).matchAll(/!\[([^\]]+)\]\((?:docs\/)?(charts\/[^)]+)\)/g)].map(
        ([, alt, file]) => `${file}: ${alt}`,
      );
    expect(charts("README.md")).toHaveLength(2);
    expect(charts("docs/benchmarks.md")).toEqual(expect.arrayContaining(charts("README.md")));
  });

  test("says how to run the tests of this repository", () => {
    expect(textOf("README.md")).toContain("npm ci && npm test");
  });
});

test("every picture on a page exists, in light and dark, and has a limited size", () => {
  const shown = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/(?:src|srcset)="((?:docs\/)?images\/[^"]+)"/g)].map(([, file = ""]) =>
      join(path, "..", file),
    ),
  );
  expect(shown.length).toBeGreaterThan(0);
  expect(shown.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  expect(shown.filter((file) => statSync(join(ROOT, file)).size > 150_000)).toEqual([]);
  const dark = shown.filter((file) => file.endsWith("-dark.png"));
  expect(dark.map((file) => file.replace("-dark.png", ".png"))).toEqual(
    shown.filter((file) => !file.endsWith("-dark.png")),
  );
});

test("every page of the documentation begins with what its reader can do after it", () => {
  const silent = pages
    .filter(({ path }) => path.startsWith("docs/") && path !== "docs/README.md")
    .filter(({ text }) => !/^# .+\n\nThis page /.test(text))
    .map(({ path }) => path);
  expect(silent).toEqual([]);
});

test("the index of the documentation links every page", () => {
  const reached = new Set(
    pages
      .filter(({ path }) => path === "docs/README.md" || path === "README.md")
      .flatMap(linksOf)
      .map(({ path }) => path),
  );
  const missing = pages
    .map(({ path }) => path)
    .filter((path) => path.startsWith("docs/") && !reached.has(path));
  expect(missing).toEqual([]);
});

test("the index of the decisions links every decision", () => {
  const INDEX = "docs/decisions/README.md";
  const reached = new Set(
    decisions
      .filter(({ path }) => path === INDEX)
      .flatMap(linksOf)
      .map(({ path }) => path),
  );
  const missing = decisions.map(({ path }) => path).filter((path) => path !== INDEX && !reached.has(path));
  expect(missing).toEqual([]);
});

test("every link on a page has an existing target, and its anchor an existing heading", () => {
  const links = [...pages, ...decisions].flatMap(linksOf);
  expect(links.length).toBeGreaterThan(100);
  const broken = links
    .filter(({ path, anchor }) => {
      const file = join(ROOT, path);
      if (!existsSync(file)) return true;
      if (anchor === undefined) return false;
      return statSync(file).isDirectory() || !anchorsOf(readFileSync(file, "utf8")).has(anchor);
    })
    .map(({ from, target }) => `${from}: ${target}`);
  expect(broken).toEqual([]);
});

/** The program's command that these words name. */
const commandOf = async (words: readonly string[]): Promise<Command | undefined> => {
  const [first = ""] = words;
  const program = await createProgram([first], {
    environment: {},
    write: () => undefined,
    note: () => undefined,
    terminal: false,
    canAsk: false,
    unread: new AbortController().signal,
    stopping: () => new AbortController().signal,
  });
  let command = program.commands.find((each) => each.name() === first);
  for (const word of words.slice(1)) {
    const inner: Command | undefined = command?.commands.find((each) => each.name() === word);
    if (inner === undefined) break;
    command = inner;
  }
  return command;
};

/** Options of `start` and `dev` come from the tables of `platform/config/`. */
const SERVER_COMMANDS = ["start", "dev"];
const serverFlags = Object.values(OPTIONS).flatMap(({ flag }: { flag?: string }) =>
  flag === undefined ? [] : [`--${flag}`],
);

/** The words after `threadloom` in shell blocks and in spans, up to the end of a command. */
const writtenCommands = (): { page: string; words: string[] }[] =>
  pages.flatMap(({ path, text }) =>
    codeOf(text, ["sh", "bash"]).flatMap((code) =>
      [...code.matchAll(/(?:^|npx |[;&|(]\s*|\s)threadloom (?!_)([a-z][^\n|;&)#'"]*)/gm)].map(
        ([, rest = ""]) => ({
          page: path,
          words: rest.trim().split(/\s+/),
        }),
      ),
    ),
  );

test("every command on a page exists, with its options", async () => {
  const written = writtenCommands();
  expect(written.length).toBeGreaterThan(40);
  const wrong: string[] = [];
  for (const { page, words } of written) {
    const shown = `${page}: threadloom ${words.join(" ")}`;
    const [name = ""] = words;
    if (name === "help") continue;
    const command = await commandOf(words);
    if (command === undefined) {
      wrong.push(shown);
      continue;
    }
    const known = SERVER_COMMANDS.includes(name)
      ? serverFlags
      : command.options.flatMap(({ long, short }) => [long, short]);
    const end = words.indexOf("--");
    const flags = words.slice(0, end < 0 ? undefined : end).filter((word) => /^--?[a-z]/.test(word));
    for (const flag of flags) if (!known.includes(flag.replace(/=.*$/, ""))) wrong.push(`${shown} (${flag})`);
  }
  expect(wrong).toEqual([]);
});

/** Variables of other programs on the pages. */
const FOREIGN_VARIABLES = [
  "FROM_KEY",
  "FROM_URL",
  "LANGSMITH_API_KEY",
  "LANGSMITH_ENDPOINT",
  "LANGSMITH_FAILED_TRACES_DIR",
  "LANGSMITH_PROJECT",
  "LANGSMITH_TRACING",
  "LG_WEBHOOK_TOKEN",
  "NEXT_PUBLIC_API_URL",
  "NEXT_PUBLIC_ASSISTANT_ID",
  "NODE_ENV",
  "NODE_OPTIONS",
  "OPENAI_API_KEY",
  "OTEL_EXPORTER_OTLP_HEADERS",
  "OTEL_METRICS_EXPORTER",
  "OTEL_TRACES_EXPORTER",
  "OTEL_TRACES_SAMPLER",
  "RUN_ID",
  "TO_KEY",
  "TO_URL",
];

test("the code reads every environment variable that a page names", () => {
  const options = Object.values(OPTIONS).flatMap(
    ({ environment }: { environment: readonly string[] }) => environment,
  );
  const known = new Set([...options, ...PROJECT_VARIABLES, ...FOREIGN_VARIABLES]);
  const others = [
    sourceText("src"),
    sourceText("test"),
    ...["docker-compose.yml", "Dockerfile", "package.json"].flatMap((path) =>
      existsSync(join(ROOT, path)) ? [readFileSync(join(ROOT, path), "utf8")] : [],
    ),
  ].join("\n");
  const unknown = pages
    .filter(({ path }) => path === "README.md" || path.startsWith("docs/"))
    .filter(({ path }) => !/^docs\/(benchmarks|reliability|mutation)\.md$/.test(path))
    .flatMap(({ path, text }) =>
      codeOf(text, ["sh", "bash", "ini"]).flatMap((code) =>
        [...code.matchAll(/\b[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]\b/g)]
          .map(([name]) => name)
          .filter((name) => !known.has(name) && !new RegExp(`\\b${name}\\b`).test(others))
          .map((name) => `${path}: ${name}`),
      ),
    );
  expect([...new Set(unknown)]).toEqual([]);
});

const pathsOf = (keys: Keys, prefix: string): string[] =>
  Object.entries(keys).flatMap(([key, meaning]) =>
    typeof meaning === "object" ? pathsOf(meaning, `${prefix}${key}.`) : [`${prefix}${key}`],
  );

test("every key of langgraph.json has its line in the page on configuration, and every line there its key", () => {
  const keys = [...pathsOf(LANGGRAPH_JSON_KEYS, ""), ...pathsOf(GRAPH_KEYS, "graphs.<id>.")].toSorted();
  const section = textOf("docs/configuration.md").split("\n## `langgraph.json`\n")[1] ?? "";
  const lines = proseOf(section)
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  const named = lines.flatMap((line) => {
    const [, first = "", , , meaning = ""] = line.split(/(?<!\\) \| |^\| /);
    const also = /Also (.+)$/.exec(meaning)?.[1] ?? "";
    return [...`${first} ${also}`.matchAll(/`([^`]+)`/g)].map(([, key]) => key ?? "");
  });
  expect(named.toSorted()).toEqual(keys);
});

/** Messages of Node, npm, PostgreSQL or LangGraph. */
const FOREIGN_SENTENCES = [
  'Unknown file extension ".ts"',
  "sorry, too many clients already",
  "No space left on device",
  'prepared statement "…" does not exist',
  "JavaScript heap out of memory",
  "InvalidNamespaceError: … cannot contain colons",
];

test("the server writes every message that troubleshooting explains", () => {
  const source = sourceText("src")
    .replaceAll('\\"', '"')
    .replaceAll(/\$\{[^}]*\}/g, "…");
  const page = textOf("docs/troubleshooting.md");
  const quoted = [
    ...[...page.matchAll(/^ *- `([^`]{12,})`/gm)].map(([, text]) => text ?? ""),
    ...[...page.matchAll(/^\| \d+ \| `([^`]+)`/gm)].map(([, text]) => text ?? ""),
  ].filter((text) => !FOREIGN_SENTENCES.includes(text));
  expect(quoted.length).toBeGreaterThan(60);
  const uncounted = quoted.flatMap((text) =>
    text
      .split("…")
      .map((part) => part.trim())
      .filter((part) => /[a-z]{3}/i.test(part) && !source.includes(part))
      .map((part) => `${text}: ${part}`),
  );
  expect(uncounted).toEqual([]);
});
