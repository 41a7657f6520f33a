import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";

/** The house rules that a machine can check: which way imports run, no cycles, where the process may be touched. */

const SOURCE = fileURLToPath(new URL("../src/", import.meta.url));

/** From the bottom up; a file may import from its own layer and from the ones before. */
const LAYERS = [
  "lib",
  "schemas",
  "database",
  "repositories",
  "engine",
  "services",
  "routes",
  "http",
  "server",
  "main",
] as const;
type Layer = (typeof LAYERS)[number];

/** Rooms whose files all lie in one layer. */
const ROOM_LAYERS: Record<string, Layer> = {
  lib: "lib",
  database: "database",
  checkpoints: "repositories",
  graphs: "repositories",
  streaming: "repositories",
  auth: "repositories",
  engine: "engine",
  http: "http",
  import: "server",
};

/** Files of the other rooms, by their names; what has another name lies as low as what it is built on. */
const FILE_LAYERS: Record<string, Layer> = {
  "schemas.ts": "schemas",
  "repository.ts": "repositories",
  "service.ts": "services",
  "routes.ts": "routes",
};

const TOP_LAYERS: Record<string, Layer> = {
  "config-options.ts": "server",
  "config.ts": "server",
  "server.ts": "server",
  "hosted-environment.ts": "server",
  "banner.ts": "main",
  "import.ts": "main",
  "main.ts": "main",
};

const FORBIDDEN_NAMES = /(^|[-/])(utils?|helpers?|manager|misc|common|shared|stuff|index)\.ts$/;

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.replaceAll("\\", "/"))
  .sort();

const textOf = (file: string): string => readFileSync(join(SOURCE, file), "utf8");

/** Files of this project that a file imports, types included. */
const importsOf = (file: string): string[] =>
  ts
    .preProcessFile(textOf(file), true, true)
    .importedFiles.map(({ fileName }) => fileName)
    .filter((name) => name.startsWith("."))
    .map((name) => relative(SOURCE, resolve(SOURCE, dirname(file), name)).replaceAll("\\", "/"))
    .filter((name) => name.endsWith(".ts") && !name.startsWith(".."));

const graph = new Map(files.map((file) => [file, importsOf(file)]));

const rankOf = (file: string, trail: readonly string[] = []): number => {
  const layer = file.includes("/")
    ? (ROOM_LAYERS[file.split("/")[0]!] ?? FILE_LAYERS[basename(file)])
    : TOP_LAYERS[file];
  if (layer !== undefined) return LAYERS.indexOf(layer);
  if (!file.includes("/") || trail.includes(file)) return -1;
  return Math.max(0, ...(graph.get(file) ?? []).map((imported) => rankOf(imported, [...trail, file])));
};

const layerOf = (file: string): Layer | undefined => LAYERS[rankOf(file)];

test("there is something to check", () => {
  expect(files.length).toBeGreaterThan(30);
  expect([...graph.values()].flat().length).toBeGreaterThan(60);
});

test("every file has its layer", () => {
  expect(files.filter((file) => layerOf(file) === undefined)).toEqual([]);
});

test("imports run one way: lib, database, repositories, engine, services, routes, http, server, main", () => {
  const upward = [...graph].flatMap(([file, imports]) =>
    imports
      .filter((imported) => rankOf(imported) > rankOf(file))
      .map((imported) => `${file} (${layerOf(file)}) imports ${imported} (${layerOf(imported)})`),
  );
  expect(upward).toEqual([]);
});

test("no file imports itself over others, not even for a type", () => {
  const cycles: string[] = [];
  const finished = new Set<string>();
  const visit = (file: string, trail: string[]): void => {
    if (finished.has(file)) return;
    const at = trail.indexOf(file);
    if (at !== -1) {
      cycles.push([...trail.slice(at), file].join(" -> "));
      return;
    }
    for (const imported of graph.get(file) ?? []) visit(imported, [...trail, file]);
    finished.add(file);
  };
  for (const file of files) visit(file, []);
  expect(cycles).toEqual([]);
});

test("what is imported exists", () => {
  const lost = [...graph].flatMap(([file, imports]) =>
    imports.filter((imported) => !graph.has(imported)).map((imported) => `${file} imports ${imported}`),
  );
  expect(lost).toEqual([]);
});

/** Reads of figures about the process; everything else of it is for main. */
const HARMLESS = new Set(["cpuUsage", "memoryUsage", "uptime"]);
/** The embedded PostgreSQL is another process, which has to be found and signalled, by one more if this one exits. */
const ALLOWED: Record<string, readonly string[]> = {
  "database/embedded-cluster.ts": ["kill", "pid"],
  "database/embedded-end.ts": ["argv"],
  "database/embedded.ts": ["execPath"],
};

const ENTRIES = ["main.ts", "import.ts", "config.ts"];

test("only main touches the process: environment, signals, exit", () => {
  const touching = files
    .filter((file) => !ENTRIES.includes(file))
    .filter((file) => {
      const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
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
    });
  expect(touching).toEqual([]);
});

/** A parameter or a destructured field may well be called `process`. */
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

test("no module keeps state that changes: two servers can live in one process", () => {
  const stateful = files.flatMap((file) => {
    const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
    return source.statements
      .filter(ts.isVariableStatement)
      .filter(({ declarationList }) => (declarationList.flags & ts.NodeFlags.Const) === 0)
      .map((statement) => `${file}: ${statement.getText().split("\n")[0]}`);
  });
  expect(stateful).toEqual([]);
});

test("src/README.md names only files that are there, each in its room", () => {
  const missing = readFileSync(join(SOURCE, "README.md"), "utf8")
    .split("\n")
    .flatMap((line) => {
      const room = /^\| `(\w+\/)` \|/.exec(line)?.[1] ?? "";
      return [...line.matchAll(/`([\w/-]+\.ts)`/g)].map(([, name = ""]) => `${room}${name}`);
    })
    .filter((name) => !files.some((file) => file === name || file.endsWith(`/${name}`)));
  expect(missing).toEqual([]);
});

test("files are named by what they hold", () => {
  expect(files.filter((file) => FORBIDDEN_NAMES.test(file))).toEqual([]);
});

test("no room is one file that swallows its subsystem", () => {
  const LINES_AT_MOST = 600;
  const long = files
    .map((file) => ({ file, lines: textOf(file).split("\n").length }))
    .filter(({ lines }) => lines > LINES_AT_MOST);
  expect(long).toEqual([]);
});
