import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import pg from "pg";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { walkThroughAll } from "./walk.ts";

const SOURCE = fileURLToPath(new URL("../../../src/", import.meta.url));
const MADE_UP = `${SOURCE}made-up-rows.ts`;

interface Column {
  type: string;
  /** Undefined: a computed column, for which PostgreSQL does not know. */
  nullable: boolean | undefined;
}
type Columns = ReadonlyMap<string, Column>;

/** The TypeScript type that `pg` creates for each type. A type that is not listed may be anything, like json. */
const KINDS: Readonly<Record<string, string>> = {
  uuid: "string",
  text: "string",
  int4: "number",
  float8: "number",
  int8: "string",
  bool: "boolean",
  timestamptz: "Date",
  _uuid: "array",
  _text: "array",
};

/** The columns of a query's result that a row type does not fit. */
const misfits = (checker: ts.TypeChecker, row: ts.Type, columns: Columns, place: ts.Node): string[] =>
  row.getProperties().flatMap((property) => {
    const { name } = property;
    const column = columns.get(name);
    const type = checker.getTypeOfSymbolAtLocation(property, place);
    const parts = type.isUnion() ? type.types : [type];
    if (column === undefined) {
      const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0;
      return isOptional ? [] : [`${name} is no column`];
    }
    const kind = KINDS[column.type];
    // A type for any JSON includes null, too.
    if (kind === undefined) return [];
    const isNull = (part: ts.Type): boolean =>
      (part.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)) !== 0;
    const isOfKind = (part: ts.Type): boolean => {
      if (kind === "string") return (part.flags & ts.TypeFlags.StringLike) !== 0;
      if (kind === "number") return (part.flags & ts.TypeFlags.NumberLike) !== 0;
      if (kind === "boolean") return (part.flags & ts.TypeFlags.BooleanLike) !== 0;
      return kind === "Date" ? part.symbol?.name === "Date" : checker.isArrayType(part);
    };
    const wrong = parts.filter((part) => !isNull(part) && !isOfKind(part));
    if (wrong.length > 0) return [`${name} is ${column.type}, not ${checker.typeToString(type)}`];
    if (column.nullable === undefined) return [];
    const takesNull = parts.some((part) => (part.flags & ts.TypeFlags.Null) !== 0);
    if (column.nullable && !takesNull) return [`${name} may be null`];
    return takesNull && !column.nullable ? [`${name} is never null`] : [];
  });

const programOf = (text: string): ts.Program => {
  const options: ts.CompilerOptions = {
    strict: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
    types: ["node"],
  };
  const host = ts.createCompilerHost(options, true);
  const { readFile, fileExists } = host;
  host.fileExists = (name) => name === MADE_UP || fileExists(name);
  host.readFile = (name) => (name === MADE_UP ? text : readFile(name));
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  return ts.createProgram([MADE_UP, ...files.map((name) => `${SOURCE}${name}`)], options, host);
};

/** The literal pieces of SQL in a node, long enough to identify a statement, without the interpolated values. */
const piecesOf = (node: ts.Node): string[] => {
  const pieces: string[] = [];
  const visit = (part: ts.Node): void => {
    const isSpelt =
      ts.isStringLiteralLike(part) || ts.isTemplateHead(part) || ts.isTemplateMiddleOrTemplateTail(part);
    if (isSpelt && part.text.length >= 15 && part.text.includes(" ")) pieces.push(part.text);
    ts.forEachChild(part, visit);
  };
  visit(node);
  return pieces;
};

const ALLOWED: Readonly<Record<string, string>> = {
  "engine/events/log.ts: data is never null":
    "one type of rows for two statements, one of which leaves out what is too large",
  "api/threads/state/graphs.ts: assistant_id is never null":
    "the statement joins an assistant that may be missing",
  "api/crons/firing/due.ts: next_run_date may be null":
    "the statement asks for rows that are due, which have one",
};

interface Site {
  place: string;
  node: ts.Node;
  row: ts.Type;
  pieces: string[];
}

/** The calls `query<Row>(…)`, with the literal parts of their SQL. */
const sitesOf = (program: ts.Program): Site[] => {
  const checker = program.getTypeChecker();
  const sites: Site[] = [];
  const spelt = (expression: ts.Expression): string[] => {
    if (!ts.isIdentifier(expression)) return piecesOf(expression);
    const declaration = checker.getSymbolAtLocation(expression)?.valueDeclaration;
    return declaration !== undefined && ts.isVariableDeclaration(declaration) && declaration.initializer
      ? piecesOf(declaration.initializer)
      : [];
  };
  for (const file of program.getSourceFiles()) {
    if (!file.fileName.startsWith(SOURCE)) continue;
    const visit = (node: ts.Node): void => {
      const argument = ts.isCallExpression(node) ? node.typeArguments?.[0] : undefined;
      if (
        argument !== undefined &&
        ts.isCallExpression(node) &&
        ts.isPropertyAccessExpression(node.expression) &&
        node.expression.name.text === "query"
      ) {
        // A statement with named parameters has its own `query`; all others are an argument.
        const own = spelt(node.expression.expression);
        const pieces = own.length > 0 ? own : spelt(node.arguments[0]!);
        const place = file.fileName.slice(SOURCE.length);
        sites.push({ place, node, row: checker.getTypeFromTypeNode(argument), pieces });
      }
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  return sites;
};

let walk: Awaited<ReturnType<typeof walkThroughAll>>;
let client: pg.Client;
let typeNames: Map<number, string>;
let nullable: Map<string, boolean>;
beforeAll(async () => {
  walk = await walkThroughAll();
  client = new pg.Client({ connectionString: walk.connectionString });
  await client.connect();
  const types = await client.query<{ oid: number; name: string }>(
    "select oid::int, typname as name from pg_type",
  );
  typeNames = new Map(types.rows.map(({ oid, name }) => [oid, name]));
  const attributes = await client.query<{ key: string; nullable: boolean }>(
    "select attrelid::int || '.' || attnum as key, not attnotnull as nullable from pg_attribute where attnum > 0",
  );
  nullable = new Map(attributes.rows.map((row) => [row.key, row.nullable]));
});
afterAll(async () => {
  await client.end();
  await walk.close();
});

interface Field {
  name: string;
  tableID: number;
  columnID: number;
  dataTypeID: number;
}

/** The columns of a statement, which PostgreSQL describes without executing it. */
const columnsOf = async (text: string): Promise<Columns> => {
  const fields = await new Promise<Field[]>((resolve, reject) => {
    let found: Field[] = [];
    let failure: Error | undefined;
    client.query({
      submit(connection: pg.Connection) {
        connection.parse({ text, name: "", types: [] }, true);
        connection.describe({ type: "S", name: "" }, true);
        connection.sync();
      },
      handleRowDescription: (message: { fields: Field[] }) => void (found = message.fields),
      handleError: (error: Error) => void (failure = error),
      handleReadyForQuery: () => (failure === undefined ? resolve(found) : reject(failure)),
    } as unknown as pg.Submittable);
  });
  return new Map(
    fields.map((field) => [
      field.name,
      {
        type: typeNames.get(field.dataTypeID) ?? "?",
        nullable: nullable.get(`${field.tableID}.${field.columnID}`),
      },
    ]),
  );
};

const ROWS = `
  import type { Selectable } from "kysely";
  import type { Tables } from "./platform/database/tables.ts";
  export type Rows = { [Table in keyof Tables]: Selectable<Tables[Table]> };
  export interface Misspelt { run_id: string; statu: string }
  export interface NeverNull { worker_id: string }
  export interface AlwaysThere { thread_id: string | null }
  export interface OtherType { attempt: string }
`;

describe("row types", () => {
  let program: ts.Program;
  let checker: ts.TypeChecker;
  let madeUp: ts.SourceFile;
  const typeNamed = (name: string): ts.Type => {
    const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(madeUp)!);
    return checker.getDeclaredTypeOfSymbol(exported.find((one) => one.name === name)!);
  };
  beforeAll(() => {
    program = programOf(ROWS);
    checker = program.getTypeChecker();
    madeUp = program.getSourceFile(MADE_UP)!;
  });

  test("match the tables: no column is missing or extra, and nullable columns are typed so", async () => {
    const found: string[] = [];
    const tables = typeNamed("Rows").getProperties();
    expect(tables.length).toBeGreaterThan(5);
    for (const table of tables) {
      const row = checker.getTypeOfSymbolAtLocation(table, madeUp);
      const columns = await columnsOf(`select * from threadloom.${table.name}`);
      const faults = misfits(checker, row, columns, madeUp);
      found.push(...faults.map((fault) => `${table.name}: ${fault}`));
    }
    expect(found).toEqual([]);
  });

  test("match the statements that return them", async () => {
    const found: string[] = [];
    let compared = 0;
    for (const { place, node, row, pieces } of sitesOf(program)) {
      const isIt = (text: string): boolean => pieces.every((piece) => text.includes(piece));
      const texts = pieces.length === 0 ? [] : walk.statements.filter(isIt);
      const faults: string[][] = [];
      for (const text of texts) {
        if (!/^\s*create /.test(text)) faults.push(misfits(checker, row, await columnsOf(text), node));
      }
      // The parts that are not literal can make several statements, some of which are called elsewhere.
      const least = faults.sort((one, other) => one.length - other.length)[0];
      if (least === undefined) continue;
      compared += 1;
      found.push(...least.map((fault) => `${place}: ${fault}`));
    }
    expect(found.filter((fault) => !Object.hasOwn(ALLOWED, fault))).toEqual([]);
    expect(compared).toBeGreaterThan(30);
  });

  test.each([
    ["Misspelt", ["statu is no column"]],
    ["NeverNull", ["worker_id may be null"]],
    ["AlwaysThere", ["thread_id is never null"]],
    ["OtherType", ["attempt is int4, not string"]],
  ])("that are wrong are found: %s", async (name, faults) => {
    const columns = await columnsOf("select r.* from threadloom.runs r where r.thread_id = $1");
    expect(misfits(checker, typeNamed(name), columns, madeUp)).toEqual(faults);
  });
});
