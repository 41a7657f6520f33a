import ts from "typescript";
import type { Change } from "./mutant.ts";

/** The faults for a line of TypeScript: an inverted condition, a comparison off by one, a missing step. */

const SWAPS = new Map<ts.SyntaxKind, string>([
  [ts.SyntaxKind.LessThanToken, "<="],
  [ts.SyntaxKind.LessThanEqualsToken, "<"],
  [ts.SyntaxKind.GreaterThanToken, ">="],
  [ts.SyntaxKind.GreaterThanEqualsToken, ">"],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [ts.SyntaxKind.AmpersandAmpersandToken, "||"],
  [ts.SyntaxKind.BarBarToken, "&&"],
  [ts.SyntaxKind.PlusToken, "-"],
  [ts.SyntaxKind.MinusToken, "+"],
]);

/** Calls that only log. */
const isSaid = (text: string): boolean => /^(?:await )?(?:\w+\.)*(?:logger|log)\b/.test(text);

/** A condition that is one comparison: swapping it equals inverting it. */
const isComparison = (node: ts.Expression): boolean =>
  ts.isBinaryExpression(node) && SWAPS.has(node.operatorToken.kind);

const leaves = (node: ts.Statement): boolean => {
  const last = ts.isBlock(node) ? node.statements.at(-1) : node;
  return (
    last !== undefined &&
    (ts.isReturnStatement(last) ||
      ts.isThrowStatement(last) ||
      ts.isContinueStatement(last) ||
      ts.isBreakStatement(last))
  );
};

/** The changes of one node, without those of its children. */
export const codeChanges = (node: ts.Node, source: string): Change[] => {
  const change = (operator: string, at: ts.Node, replacement: string): Change => {
    const [start, end] = [at.getStart(), at.getEnd()];
    const short = (text: string): string => text.replace(/\s+/g, " ").trim();
    return {
      operator,
      start,
      end,
      replacement,
      before: short(source.slice(start, end)),
      after: short(replacement),
    };
  };
  const changes: Change[] = [];
  if (ts.isIfStatement(node)) {
    if (!isComparison(node.expression))
      changes.push(change("negated", node.expression, `!(${node.expression.getText()})`));
    if (node.elseStatement === undefined && leaves(node.thenStatement))
      changes.push(change("no way out", node, ";"));
  } else if (ts.isConditionalExpression(node) && !isComparison(node.condition)) {
    changes.push(change("negated", node.condition, `!(${node.condition.getText()})`));
  } else if (ts.isBinaryExpression(node)) {
    const other = SWAPS.get(node.operatorToken.kind);
    const isText = /["'`]/.test(node.getText());
    if (other !== undefined && !(isText && "+-".includes(other)))
      changes.push({
        ...change("swapped", node.operatorToken, other),
        before: node.getText().replace(/\s+/g, " "),
        after: `… ${other} …`,
      });
  } else if (ts.isExpressionStatement(node) && !isSaid(node.getText())) {
    changes.push(change("left out", node, ";"));
    if (ts.isAwaitExpression(node.expression))
      changes.push(change("not awaited", node.expression, `void ${node.expression.expression.getText()}`));
  }
  return changes;
};
