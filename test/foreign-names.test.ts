import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";

/**
 * A name from outside must never be looked up in a plain object, because every object has `constructor`. One such lookup
 * made a thread unreadable, and with it every search that met it. So `src` looks up no name that is unknown at compile
 * time, except those below, and those that
 *  - are inside an expression or a statement that checks `Object.hasOwn` for the same name first,
 *  - come from a loop over the keys of the same object.
 * Otherwise: a `Map`, or `ownField` of platform/lib/names.ts.
 */
const ALLOWED: Readonly<Record<string, string>> = {
  "access/keys/scopes.ts: NEEDED[resource]": "a name of our own list",
  "access/keys/scopes.ts: NEEDED[resource][action]": "a name of our own list",
  "platform/encryption/encryption.ts: COLUMNS[table][column]": "a column of our own list",
  "platform/encryption/encryption.ts: (row as Record<string, unknown>)[name]": "a column of our own list",
  "platform/lib/logger.ts: values[index] = boundedText(value)": "a place in a list",
  "platform/database/statement.ts: given[name]": "a parameter of our own statement",
  "platform/lib/names.ts: name in Object.prototype": "asks for just that",
  "platform/telemetry/sdk.ts: environment[name]": "a variable of our own list",
  "server/key-rotation/tables.ts: row[column]": "a column of our own list",
  "server/key-rotation/walk.ts: next[column]": "a column of our own list",
  "server/key-rotation/walk.ts: next[column] = stored": "a column of our own list",
  "server/key-rotation/walk.ts: row[column]": "a column of our own list",
  "server/key-rotation/walk.ts: sql[column]": "a parameter of our own statement",
  "state/values/comparing.ts: (one as Properties)[key]": "a key of just that object",
  "state/values/comparing.ts: stored[key]": "a key of just that object",
  "platform/lib/properties.ts: target[name] = value": "`__proto__` is dealt with before",
  'state/values/reviving.ts: properties[key] = typeof part === "object" && part !== null ? this.revive(part) : part':
    "`__proto__` is dealt with before",
  "state/values/types/message.ts: flat[name] = Object.hasOwn(message, key) ? live[key] : message.lc_kwargs?.[key]":
    "`__proto__` is dealt with before",
  "state/values/types/message.ts: live[key]": "a name of our own list, or the message's own",
  "state/values/types/message.ts: message.lc_kwargs?.[key]": "a key of just that object",
  "state/values/types/message-trees.ts: kwargs[key] = encode(value)": "two names of our own",
  "state/values/types/message-trees.ts: live[key]": "a name of our own list, or the message's own",
  "state/checkpoints/reader.ts: checkpoint.channel_values[TASKS] = sends": "a constant of LangGraph's",
  "state/checkpoints/reader.ts: checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1":
    "a constant of LangGraph's",
  "graphs/graphs.ts: found[name] = marked(graphSchemas(id, subgraph, fromSource?.get(name)), fromSource)":
    "a node of the operator's graph",
  "graphs/json-schemas.ts: properties[key] = { ...messagesSchema(), ...schema }":
    "a channel of the operator's graph",
  "graphs/json-schemas.ts: properties[key] = typedSchema(typed, () => channelSchema(channel, direction))":
    "a channel of the operator's graph",
  "graphs/json-schemas.ts: properties[key] = schema": "a channel of the operator's graph",
  "graphs/modules.ts: exportName in exports": "the operator's own module",
  "graphs/modules.ts: exports[exportName]": "the operator's own module",
  "protocols/calls/tasks.ts: STATES[run.status]": "a status of our own table",
  "http/openapi.ts: STATUS_CODES[status]": "a status of our own routes",
  "protocols/ui/bundle.ts: CONTENT_TYPES[extension]": "how a file of our own bundler ends",
  "protocols/ui/service.ts: ESCAPES[character]": "one of five characters",
  "http/public-address.ts: headers[`x-forwarded-${name}`]": "one of two headers",
  "api/store/embedding.ts: module[provider.className]": "a name of our own list",
  "state/values/classes.ts: module[name]": "a name of our own list",
  "state/values/classes.ts: (ownMessages as Record<string, unknown>)[name]": "a name of our own list",
  "graphs/langgraph-copy.ts: require.cache[entry]": "the path of a file, which Node has found",
};

const OF_THE_OPERATOR = [
  "platform/config/config.ts",
  "platform/config/option.ts",
  "platform/config/options.ts",
  "platform/config/resolve.ts",
  "platform/config/run-options.ts",
  "cli/server-flags.ts",
  "cli/start/starting.ts",
  "cli/dev/launch.ts",
  "cli/dev/server.ts",
  "cli/start/serve.ts",
  "cli/own-database.ts",
  "server/embedding/server.ts",
  "graphs/project/webhooks.ts",
];

const SOURCE = fileURLToPath(new URL("../src/", import.meta.url));

/**
 * The types of packages are left out except zod's, from which request types are derived: this takes 3 s instead of 8. A value from another
 * package counts as any, and is reported, too.
 */
const programOf = (names: readonly string[], made: ReadonlyMap<string, string> = new Map()): ts.Program => {
  const options: ts.CompilerOptions = {
    strict: true,
    target: ts.ScriptTarget.ES2023,
    lib: ["lib.es2023.d.ts"],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    allowImportingTsExtensions: true,
    noEmit: true,
    types: [],
  };
  const host = ts.createCompilerHost(options, true);
  const { readFile, fileExists } = host;
  host.fileExists = (name) => made.has(name) || fileExists(name);
  host.readFile = (name) => made.get(name) ?? readFile(name);
  host.resolveModuleNameLiterals = (literals, containing) =>
    literals.map(({ text }) =>
      text.startsWith(".") || text === "zod"
        ? ts.resolveModuleName(text, containing, options, host)
        : { resolvedModule: undefined },
    );
  return ts.createProgram([...names], options, host);
};

/** An expression without its TypeScript-only parts. */
const bare = (node: ts.Expression): string => {
  let inner = node;
  while (ts.isParenthesizedExpression(inner) || ts.isAsExpression(inner) || ts.isNonNullExpression(inner)) {
    inner = inner.expression;
  }
  return inner.getText();
};

const isCallOf = (node: ts.Node, name: string): node is ts.CallExpression =>
  ts.isCallExpression(node) && node.expression.getText() === name;

const contains = (node: ts.Node, matches: (node: ts.Node) => boolean): boolean =>
  matches(node) || (ts.forEachChild(node, (child) => contains(child, matches)) ?? false);

/** Whether code around the lookup has checked that the object itself has the name. */
const isGuarded = (node: ts.Node, object: string, key: string): boolean => {
  const asks = (part: ts.Node): boolean =>
    isCallOf(part, "Object.hasOwn") && part.arguments.map(bare).join() === [object, key].join();
  for (let around = node.parent; around !== undefined && !ts.isFunctionLike(around); around = around.parent) {
    if (ts.isBinaryExpression(around) && contains(around.left, asks)) return true;
    if (ts.isConditionalExpression(around) && contains(around.condition, asks)) return true;
    if (ts.isIfStatement(around) && contains(around.expression, asks)) return true;
    const names = ts.isForInStatement(around) || ts.isForOfStatement(around) ? around : undefined;
    if (names === undefined || !ts.isVariableDeclarationList(names.initializer)) continue;
    const from = ts.isForInStatement(names)
      ? bare(names.expression)
      : isCallOf(names.expression, "Object.keys")
        ? bare(names.expression.arguments[0]!)
        : undefined;
    if (names.initializer.declarations[0]?.name.getText() === key && from === object) return true;
  }
  return false;
};

/** Lookups in an object by a name that is unknown at compile time: file and expression. */
const foreignNamesIn = (program: ts.Program, files: readonly string[]): string[] => {
  const checker = program.getTypeChecker();
  const isKnown = (type: ts.Type): boolean =>
    type.isUnion()
      ? type.types.every(isKnown)
      : type.isStringLiteral() ||
        (type.flags & (ts.TypeFlags.NumberLike | ts.TypeFlags.ESSymbolLike | ts.TypeFlags.Never)) !== 0;
  const found: string[] = [];
  for (const file of files) {
    const visit = (node: ts.Node): void => {
      const [object, key] = ts.isElementAccessExpression(node)
        ? [node.expression, node.argumentExpression]
        : ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.InKeyword
          ? [node.right, node.left]
          : [];
      if (
        object !== undefined &&
        key !== undefined &&
        !ts.isDeleteExpression(node.parent) &&
        !isKnown(checker.getTypeAtLocation(key)) &&
        !isGuarded(node, bare(object), bare(key))
      ) {
        const { parent } = node;
        const isTarget =
          ts.isBinaryExpression(parent) &&
          parent.left === node &&
          parent.operatorToken.kind === ts.SyntaxKind.EqualsToken;
        found.push(
          `${file.slice(SOURCE.length)}: ${(isTarget ? parent : node).getText().replace(/\s+/g, " ")}`,
        );
      }
      ts.forEachChild(node, visit);
    };
    visit(program.getSourceFile(file)!);
  }
  return found;
};

test("no name from outside is looked up in a plain object", () => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts") && !OF_THE_OPERATOR.includes(file))
    .map((file) => join(SOURCE, file));
  const found = foreignNamesIn(programOf(files), files);
  expect(found.filter((lookup) => !Object.hasOwn(ALLOWED, lookup))).toEqual([]);
  // An allowed lookup that no longer exists must be removed, or it could return unnoticed.
  expect(Object.keys(ALLOWED).filter((lookup) => !found.includes(lookup))).toEqual([]);
});

test("an unsafe lookup is found, and a safe one is not", () => {
  const file = `${SOURCE}made-up.ts`;
  const text = `
    import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
    declare const fields: Record<string, number>;
    declare const name: string;
    declare const place: "left" | "right";
    declare const list: number[];
    export const old = (channel: string, position: number) => WRITES_IDX_MAP[channel] ?? position;
    export const read = fields[name];
    export const asked = name in fields;
    fields[name] = 1;
    for (const other in list) fields[other] = 1;
    export const safe = [
      Object.hasOwn(fields, name) ? fields[name] : 0, fields["left"], fields[place], list[list.length - 1],
    ];
    for (const key in fields) fields[key] += 1;
    for (const key of Object.keys(fields)) fields[key] += 1;
    if (Object.hasOwn(fields, name) && fields[name] > 1) delete fields[name];
  `;
  expect(foreignNamesIn(programOf([file], new Map([[file, text]])), [file])).toEqual([
    "made-up.ts: WRITES_IDX_MAP[channel]",
    "made-up.ts: fields[name]",
    "made-up.ts: name in fields",
    "made-up.ts: fields[name] = 1",
    "made-up.ts: fields[other] = 1",
  ]);
});
