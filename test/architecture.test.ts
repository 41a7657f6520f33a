import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";
import { cyclesIn } from "./import-cycles.ts";
import { TARGETS } from "./mutation/targets.ts";
import { districtOf, fronts, ROOMS, roomOf } from "./rooms.ts";

/** The structure rules that a program can check: the direction of imports, no cycles, and which files may touch the process. */

const SOURCE = fileURLToPath(new URL("../src/", import.meta.url));

/** Within a room that has them, from the bottom up. */
const FLOORS = ["schemas.ts", "repository.ts", "service.ts", "routes.ts"];

const FORBIDDEN_NAMES = /(^|[-/])(utils?|helpers?|manager|misc|common|shared|stuff|index)\.ts$/;

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.replaceAll("\\", "/"))
  .sort();

const texts = new Map(files.map((file) => [file, readFileSync(join(SOURCE, file), "utf8")]));
const textOf = (file: string): string => texts.get(file) ?? "";
/** Parsed once for all tests. */
const trees = new Map(
  files.map((file) => [file, ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true)]),
);

/** Files of this project that a file imports, types included. */
const importsOf = (file: string): string[] =>
  ts
    .preProcessFile(textOf(file), true, true)
    .importedFiles.map(({ fileName }) => fileName)
    .filter((name) => name.startsWith("."))
    .map((name) => relative(SOURCE, resolve(SOURCE, dirname(file), name)).replaceAll("\\", "/"))
    .filter((name) => name.endsWith(".ts") && !name.startsWith(".."));

const graph = new Map(files.map((file) => [file, importsOf(file)]));

const rankOf = (file: string): number => ROOMS.indexOf(roomOf(file) ?? "");

test("the list of files is not empty", () => {
  expect(files.length).toBeGreaterThan(30);
  expect([...graph.values()].flat().length).toBeGreaterThan(60);
});

test("every file is in a room that has its place in the order", () => {
  expect(files.filter((file) => rankOf(file) === -1)).toEqual([]);
  expect(ROOMS.filter((room) => !files.some((file) => roomOf(file) === room))).toEqual([]);
});

test("rooms import one way, so there is no cycle", () => {
  const upward = [...graph].flatMap(([file, imports]) =>
    imports
      .filter((imported) => rankOf(imported) > rankOf(file))
      .map((imported) => `${file} imports ${imported}`),
  );
  expect(upward).toEqual([]);
});

const acrossDistricts = [...graph].flatMap(([file, imports]) =>
  imports
    .filter((imported) => districtOf(imported) !== districtOf(file))
    .map((imported) => ({ file, imported })),
);

test("a district imports only the fronts of others, except server/, which builds all parts", () => {
  const inner = acrossDistricts
    .filter(
      ({ file, imported }) => !["server", "main.ts"].includes(districtOf(file)) && !fronts.has(imported),
    )
    .map(({ file, imported }) => `${file} imports ${imported}`);
  expect(inner).toEqual([]);
});

test("a front names only files that other districts import", () => {
  const imported = new Set(acrossDistricts.map((each) => each.imported));
  expect([...fronts].filter((file) => !imported.has(file))).toEqual([]);
  expect(fronts.size).toBeGreaterThan(50);
});

test("within a room schemas import no repository, repositories no service, services no routes", () => {
  const floorOf = (file: string): number => FLOORS.indexOf(basename(file));
  const upward = [...graph].flatMap(([file, imports]) =>
    imports
      .filter((imported) => dirname(imported) === dirname(file))
      .filter((imported) => floorOf(file) !== -1 && floorOf(imported) > floorOf(file))
      .map((imported) => `${file} imports ${imported}`),
  );
  expect(upward).toEqual([]);
});

test("the sub-rooms of a room have no cycle", () => {
  const edges = new Map<string, Set<string>>();
  for (const [file, imports] of graph) {
    for (const imported of imports) {
      const [from, to] = [dirname(file), dirname(imported)];
      const room = roomOf(file);
      if (from === to || from === room || to === room || room !== roomOf(imported)) continue;
      edges.set(from, (edges.get(from) ?? new Set()).add(to));
    }
  }
  expect(cyclesIn(edges)).toEqual([]);
});

test("no file imports itself through others, not even for a type", () => {
  expect(cyclesIn(new Map([...graph].map(([file, imports]) => [file, new Set(imports)])))).toEqual([]);
});

test("every import exists", () => {
  const lost = [...graph].flatMap(([file, imports]) =>
    imports.filter((imported) => !graph.has(imported)).map((imported) => `${file} imports ${imported}`),
  );
  expect(lost).toEqual([]);
});

/** Reads of figures about the process; only entry files may use the rest. */
const HARMLESS = new Set(["cpuUsage", "memoryUsage", "uptime", "version"]);
/** The embedded PostgreSQL is another process, which this file finds and signals. */
const ALLOWED: Record<string, readonly string[]> = {
  "platform/database/embedded/embedded.ts": ["kill"],
};

const ENTRIES = [
  "main.ts",
  "server/app/graph-process.ts",
  "server/app/schema-process.ts",
  "cli/dev/launch.ts",
  "cli/dev/server.ts",
  "cli/doctor/loading-check.ts",
  "cli/start/serve.ts",
  "server/embedding/server.ts",
  "platform/config/config.ts",
];

test("only entry files touch the process: environment, signals, exit", () => {
  const touching = [...trees]
    .filter(([file]) => !ENTRIES.includes(file))
    .filter(([file, source]) => {
      let touches = false;
      const visit = (node: ts.Node): void => {
        if (
          ts.isPropertyAccessExpression(node) &&
          ts.isIdentifier(node.expression) &&
          node.expression.text === "process" &&
          !declaresProcess(source)
        ) {
          touches = true;
        }
        if (
          ts.isImportDeclaration(node) &&
          /^(node:)?process$/.test((node.moduleSpecifier as ts.StringLiteral).text)
        ) {
          const named = node.importClause?.namedBindings;
          const names =
            named && ts.isNamedImports(named)
              ? named.elements.map(({ name, propertyName }) => (propertyName ?? name).text)
              : ["all of it"];
          if (names.some((name) => !HARMLESS.has(name) && !ALLOWED[file]?.includes(name))) touches = true;
        }
        ts.forEachChild(node, visit);
      };
      visit(source);
      return touches;
    })
    .map(([file]) => file);
  expect(touching).toEqual([]);
});

/** A parameter or a destructured field may have the name `process`. */
const declaresProcess = (source: ts.SourceFile): boolean => {
  let declares = false;
  const visit = (node: ts.Node): void => {
    const named = ts.isParameter(node) || ts.isBindingElement(node) || ts.isVariableDeclaration(node);
    if (named && ts.isIdentifier(node.name) && node.name.text === "process") declares = true;
    ts.forEachChild(node, visit);
  };
  visit(source);
  return declares;
};

test("no module has mutable state: two servers can live in one process", () => {
  const stateful = [...trees].flatMap(([file, source]) => {
    return source.statements
      .filter(ts.isVariableStatement)
      .filter(({ declarationList }) => (declarationList.flags & ts.NodeFlags.Const) === 0)
      .map((statement) => `${file}: ${statement.getText().split("\n")[0]}`);
  });
  expect(stateful).toEqual([]);
});

test("only statement() numbers the parameters of SQL", () => {
  const numbers = (node: ts.Node): boolean =>
    (ts.isPropertyAccessExpression(node) && node.getText() === "values.push") ||
    (ts.isStringLiteralLike(node) && /[\s(=,|]\$\d/.test(node.text)) ||
    (ts.isTemplateMiddleOrTemplateTail(node) && /[\s(=,|]\$\d/.test(node.text)) ||
    ((ts.isTemplateHead(node) || ts.isTemplateMiddle(node)) && /[\s(=,|]\$\d|\$$/.test(node.text)) ||
    (ts.forEachChild(node, numbers) ?? false);
  expect(files.filter((file) => numbers(trees.get(file)!))).toEqual(["platform/database/statement.ts"]);
});

test("src/README.md names only existing files, each in its room", () => {
  const missing = readFileSync(join(SOURCE, "README.md"), "utf8")
    .split("\n")
    .flatMap((line) => {
      const room = /^\| `(\w+\/)` \|/.exec(line)?.[1] ?? "";
      return [...line.matchAll(/`([\w/-]+\.ts)`/g)].map(([, name = ""]) => `${room}${name}`);
    })
    .filter((name) =>
      name.startsWith("test/")
        ? !existsSync(join(SOURCE, "..", name))
        : !files.some((file) => file === name || file.endsWith(`/${name}`)),
    );
  expect(missing).toEqual([]);
});

test("the README of a room names only existing files and folders", () => {
  const readmes = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => name.endsWith("/README.md"));
  const missing = readmes.flatMap((readme) =>
    [...readFileSync(join(SOURCE, readme), "utf8").matchAll(/`([\w./-]+(?:\.ts|\w\/))`/g)]
      .map(([, name = ""]) => name.replace(/^(\.\.?\/)+/, ""))
      .filter((name) => !existsSync(join(SOURCE, "..", name)))
      .filter((name) => !files.some((file) => `/${file}`.includes(`/${name}`)))
      .map((name) => `${readme}: ${name}`),
  );
  expect(readmes).not.toEqual([]);
  expect(missing).toEqual([]);
});

/** Files of users' projects, in examples. */
const EXAMPLES = /^(agent|graph|graphs|embeddings|support)\.ts$/;

test("comments and sentences name only existing files", () => {
  const exists = (name: string): boolean =>
    files.some((file) => `/${file}`.endsWith(`/${name}`)) ||
    existsSync(join(SOURCE, "..", name)) ||
    existsSync(join(SOURCE, name));
  const missing = files.flatMap((file) => {
    const text = textOf(file);
    const comments = [...text.matchAll(/\/\*[\s\S]*?\*\/|\/\/.*/g)].flatMap(([comment]) =>
      [...comment.matchAll(/(?<![\w.*:/"'-])([\w-]+(?:\/[\w-]+)*\.(?:ts|md))\b/g)].map(
        ([, name = ""]) => name,
      ),
    );
    return [...comments, ...[...text.matchAll(/docs\/[\w/.-]+\.md/g)].map(([name]) => name)]
      .map((name) => name.replace(/^src\//, ""))
      .filter((name) => !EXAMPLES.test(name) && !exists(name))
      .map((name) => `${file}: ${name}`);
  });
  expect(missing).toEqual([]);
});

test("files are named by their content", () => {
  expect(files.filter((file) => FORBIDDEN_NAMES.test(file))).toEqual([]);
});

test("no room is one file that contains its whole subsystem", () => {
  const LINES_AT_MOST = 400;
  const long = files
    .map((file) => ({ file, lines: textOf(file).split("\n").length }))
    .filter(({ lines }) => lines > LINES_AT_MOST);
  expect(long).toEqual([]);
});

test("no function is longer than the longest existing one", () => {
  // The limit may only go down. A function's lines are its own: those of functions within count for these.
  const LINES_AT_MOST = 130;
  const lengths = [...trees].flatMap(([file, source]) => {
    const lineOf = (position: number): number => source.getLineAndCharacterOfPosition(position).line;
    const found: { file: string; line: number; lines: number }[] = [];
    /** Returns the lines of the functions within the node. */
    const visit = (node: ts.Node): number => {
      let within = 0;
      ts.forEachChild(node, (child) => {
        within += visit(child);
      });
      if (!ts.isFunctionLike(node)) return within;
      const [first, last] = [lineOf(node.getStart()), lineOf(node.end)];
      const lines = last - first + 1;
      found.push({ file, line: first + 1, lines: lines - within });
      return lines;
    };
    visit(source);
    return found;
  });
  expect(lengths.length).toBeGreaterThan(500);
  expect(lengths.filter(({ lines }) => lines > LINES_AT_MOST)).toEqual([]);
});

test("the mutation run names only existing sources and tests", () => {
  const named = TARGETS.flatMap(({ file, tests }) => [file, ...tests.map((name) => `test/${name}.test.ts`)]);
  expect(named.filter((file) => !existsSync(join(SOURCE, "..", file)))).toEqual([]);
});
