import ts from "typescript";
import { codeChanges } from "./code-changes.ts";
import type { Change, Mutant } from "./mutant.ts";
import { isSql, sqlChanges } from "./sql-changes.ts";

/** The names around a node, from outside: the function or the constant that a reader would look for. */
const placeOf = (node: ts.Node): string => {
  const names: string[] = [];
  for (let at: ts.Node | undefined = node; at !== undefined; at = at.parent) {
    if (
      (ts.isVariableDeclaration(at) ||
        ts.isMethodDeclaration(at) ||
        ts.isFunctionDeclaration(at) ||
        ts.isPropertyAssignment(at)) &&
      at.name !== undefined &&
      ts.isIdentifier(at.name)
    )
      names.unshift(at.name.text);
  }
  // Inside a factory, the factory's name does not help.
  return names.find((name) => /^[A-Z_]+$/.test(name)) ?? names.slice(-2).join(".");
};

const parsed = (file: string, source: string): ts.SourceFile =>
  ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);

const mutantOf = (tree: ts.SourceFile, node: ts.Node, change: Change, offset: number): Mutant => ({
  ...change,
  file: tree.fileName,
  place: placeOf(node),
  line: tree.getLineAndCharacterOfPosition(offset + change.start).line + 1,
  start: offset + change.start,
  end: offset + change.end,
});

/** All mutants of the statements of SQL in a source file. */
export const sqlMutants = (file: string, source: string): Mutant[] => {
  const tree = parsed(file, source);
  const found: Mutant[] = [];
  const visit = (node: ts.Node): void => {
    if (
      ts.isStringLiteral(node) ||
      ts.isNoSubstitutionTemplateLiteral(node) ||
      ts.isTemplateExpression(node)
    ) {
      const start = node.getStart() + 1;
      const text = source.slice(start, node.getEnd() - 1);
      if (isSql(text)) {
        for (const change of sqlChanges(text)) found.push(mutantOf(tree, node, change, start));
        return;
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
};

/** All mutants of the code of a source file, except its SQL statements. */
export const codeMutants = (file: string, source: string): Mutant[] => {
  const tree = parsed(file, source);
  const found: Mutant[] = [];
  const visit = (node: ts.Node): void => {
    for (const change of codeChanges(node, source)) found.push(mutantOf(tree, node, change, 0));
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
};
