import ts from "typescript";
import type { JsonObject } from "../../platform/lib/json.ts";
import { messageOf } from "../project/langgraph-json.ts";
import type {
  Extraction,
  ExtractionRequest,
  Properties,
  SourceSchemas,
  Origins,
} from "./extraction-process.ts";
import { createGraphTypes } from "./graph-types.ts";
import { digestOf, packageFileOf } from "./cache.ts";
import { openProject, typedFile } from "./program.ts";
import { createSubgraphNodes } from "./subgraph-nodes.ts";
import { TypeDocument } from "./type-document.ts";
import { createTypeFacts } from "./type-facts.ts";

/** Limits per key, per graph with subgraphs, and in total. A longer schema keeps only its type. */
const KEY_CHARACTERS_AT_MOST = 32_000;
const GRAPH_CHARACTERS_AT_MOST = 256_000;
const ALL_CHARACTERS_AT_MOST = 4_000_000;
const SUBGRAPHS_AT_MOST = 100;
const NESTED_AT_MOST = 8;
const FAILURE_CHARACTERS = 500;

/**
 * Executes no project code, and type errors are no obstacle. Takes seconds of CPU and hundreds of megabytes, so run it
 * in its own process.
 */
export const extract = ({ folder, entries }: ExtractionRequest): Extraction => {
  const files = entries.map(({ file }) => typedFile(file));
  const { program, configFiles, isComplete } = openProject(folder, files);
  const checker = program.getTypeChecker();
  const graphTypes = createGraphTypes(checker);
  const facts = createTypeFacts(program);
  const own = program.getSourceFiles().filter((file) => packageFileOf(file.fileName) === undefined);
  const subgraphNodes = createSubgraphNodes(
    checker,
    own,
    (expression) => graphTypes.of(checker.getTypeAtLocation(expression)) !== undefined,
  );

  let allLeft = ALL_CHARACTERS_AT_MOST;
  let graphLeft = 0;
  const bounded = (schema: JsonObject): JsonObject => {
    const characters = JSON.stringify(schema).length;
    if (characters > Math.min(KEY_CHARACTERS_AT_MOST, graphLeft, allLeft))
      return typeof schema.type === "string" ? { type: schema.type } : {};
    graphLeft -= characters;
    allLeft -= characters;
    return schema;
  };

  const schemasOf = (type: ts.Type): SourceSchemas | undefined => {
    const types = graphTypes.of(type);
    if (types === undefined) return undefined;
    const field = (symbol: ts.Symbol, value: ts.Type): [string, JsonObject] => [
      symbol.name,
      bounded({ ...new TypeDocument(checker, facts).make(value), ...facts.descriptionOf(symbol) }),
    ];
    const properties = (part: ts.Type | undefined): Properties =>
      Object.fromEntries(
        (part === undefined ? [] : facts.fieldsOf(part)).flatMap((symbol) => {
          const value = checker.getTypeOfSymbol(symbol);
          return facts.isFunction(value) ? [] : [field(symbol, value)];
        }),
      );
    return {
      state: properties(types.state),
      input: properties(types.input),
      output: properties(types.output),
      context: Object.fromEntries(types.context.map(({ symbol, type: value }) => field(symbol, value))),
    };
  };

  const graphSchemas = (file: string, exportName: string): [string, SourceSchemas][] => {
    const exported = exportOf(checker, program.getSourceFile(file), exportName);
    if (exported === undefined) return [];
    const found: [string, SourceSchemas][] = [];
    graphLeft = GRAPH_CHARACTERS_AT_MOST;
    const add = (namespace: string, type: ts.Type, node: ts.Node | undefined, nested: number): void => {
      const ofGraph = schemasOf(type);
      if (ofGraph === undefined || found.length > SUBGRAPHS_AT_MOST) return;
      found.push([namespace, ofGraph]);
      if (nested === NESTED_AT_MOST) return;
      for (const { name, graph } of subgraphNodes.of(node)) {
        const inner = namespace === "" ? name : `${namespace}|${name}`;
        add(inner, checker.getTypeAtLocation(graph), graph, nested + 1);
      }
    };
    add("", checker.getTypeOfSymbol(exported), exported.valueDeclaration ?? exported.declarations?.[0], 0);
    return found;
  };

  const graphs: Extraction["graphs"] = [];
  const failures: Extraction["failures"] = [];
  for (const [index, { id, exportName }] of entries.entries()) {
    try {
      const ofGraph = graphSchemas(files[index] ?? "", exportName);
      if (ofGraph.length > 0) graphs.push([id, ofGraph]);
    } catch (error) {
      // A bug of TypeScript must not lose the other graphs' schemas.
      failures.push([id, messageOf(error).slice(0, FAILURE_CHARACTERS)]);
    }
  }
  return {
    graphs,
    failures,
    origins: originsOf(program, configFiles),
    isComplete,
  };
};

const exportOf = (
  checker: ts.TypeChecker,
  file: ts.SourceFile | undefined,
  name: string,
): ts.Symbol | undefined => {
  const module = file && checker.getSymbolAtLocation(file);
  const found = module && checker.getExportsOfModule(module).find((symbol) => symbol.name === name);
  if (found === undefined || (found.flags & ts.SymbolFlags.Alias) === 0) return found;
  return checker.getAliasedSymbol(found);
};

const originsOf = (program: ts.Program, configFiles: readonly string[]): Origins => {
  const digests = new Map<string, string>();
  const others = new Set(configFiles);
  for (const { fileName, text } of program.getSourceFiles()) {
    const packageFile = packageFileOf(fileName);
    if (packageFile === undefined) digests.set(fileName, digestOf(text));
    else others.add(packageFile);
  }
  for (const file of others) digests.set(file, digestOf(ts.sys.readFile(file) ?? ""));
  return [...digests];
};
