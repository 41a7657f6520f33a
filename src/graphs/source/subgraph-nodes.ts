import ts from "typescript";

/** E.g. `.addNode("research", researchGraph)`. */
interface SubgraphNode {
  name: string;
  graph: ts.Expression;
}

/** Steps through imports, variables, calls and promises. */
const STEPS_AT_MOST = 100;

/**
 * Finds graph nodes in the syntax, because a graph's type has only node names. Groups `addNode` calls by their `new
 * StateGraph(…)`.
 */
export const createSubgraphNodes = (
  checker: ts.TypeChecker,
  files: readonly ts.SourceFile[],
  isGraph: (expression: ts.Expression) => boolean,
) => {
  const declarationOf = (name: ts.Identifier): ts.Declaration | undefined => {
    const symbol = ts.isShorthandPropertyAssignment(name.parent)
      ? checker.getShorthandAssignmentValueSymbol(name.parent)
      : checker.getSymbolAtLocation(name);
    if (symbol === undefined) return undefined;
    const target = (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
    return target.valueDeclaration ?? target.declarations?.[0];
  };

  const rootOf = (start: ts.Node | undefined): ts.NewExpression | undefined => {
    let node = start;
    for (let steps = 0; node !== undefined && steps < STEPS_AT_MOST; steps += 1) {
      if (ts.isNewExpression(node)) return node;
      node = stepFrom(node);
    }
    return undefined;
  };
  const stepFrom = (node: ts.Node): ts.Node | undefined => {
    if (ts.isIdentifier(node)) return declarationOf(node);
    if (ts.isVariableDeclaration(node) || ts.isPropertyAssignment(node)) return node.initializer;
    if (ts.isFunctionLike(node)) return returnedBy(node);
    if (
      ts.isCallExpression(node) ||
      ts.isPropertyAccessExpression(node) ||
      ts.isAwaitExpression(node) ||
      ts.isParenthesizedExpression(node) ||
      ts.isAsExpression(node) ||
      ts.isSatisfiesExpression(node) ||
      ts.isNonNullExpression(node) ||
      ts.isExportAssignment(node)
    )
      return node.expression;
    return undefined;
  };

  const nodesByRoot = new Map<ts.NewExpression, SubgraphNode[]>();
  const visit = (node: ts.Node): void => {
    ts.forEachChild(node, visit);
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return;
    if (!ADDING.has(node.expression.name.text)) return;
    const found = namedActions(node.arguments).flatMap(([name, ...actions]): SubgraphNode[] => {
      const graph = actions.find((action) => isGraph(action));
      return graph === undefined ? [] : [{ name, graph }];
    });
    const root = found.length === 0 ? undefined : rootOf(node.expression.expression);
    if (root !== undefined) nodesByRoot.set(root, [...(nodesByRoot.get(root) ?? []), ...found]);
  };
  for (const file of files) visit(file);

  return {
    of(graph: ts.Node | undefined): readonly SubgraphNode[] {
      const root = rootOf(graph);
      return (root && nodesByRoot.get(root)) ?? [];
    },
  };
};

const ADDING = new Set(["addNode", "addSequence"]);

type NamedAction = [name: string, ...actions: ts.Expression[]];

/** Forms of `addNode`: `("a", a, options)`, `({ a, b: other })`, `([["a", a, options]])`. */
const namedActions = (items: readonly ts.Expression[]): NamedAction[] => {
  const [first, action, options] = items;
  if (first === undefined) return [];
  if (ts.isStringLiteralLike(first)) {
    return action === undefined
      ? []
      : [[first.text, action, ...(options === undefined ? [] : subgraphsOption(options))]];
  }
  if (ts.isArrayLiteralExpression(first)) {
    return first.elements.flatMap((element) =>
      ts.isArrayLiteralExpression(element) ? namedActions(element.elements) : [],
    );
  }
  if (!ts.isObjectLiteralExpression(first)) return [];
  return first.properties.flatMap((property): NamedAction[] => {
    if (ts.isShorthandPropertyAssignment(property)) return [[property.name.text, property.name]];
    if (!ts.isPropertyAssignment(property) || ts.isComputedPropertyName(property.name)) return [];
    return [[property.name.text, property.initializer]];
  });
};

/** `{ subgraphs: [graph] }`, for a function that invokes a graph. */
const subgraphsOption = (options: ts.Expression): readonly ts.Expression[] => {
  if (!ts.isObjectLiteralExpression(options)) return [];
  const property = options.properties.find(
    (candidate): candidate is ts.PropertyAssignment =>
      ts.isPropertyAssignment(candidate) &&
      ts.isIdentifier(candidate.name) &&
      candidate.name.text === "subgraphs",
  );
  return property !== undefined && ts.isArrayLiteralExpression(property.initializer)
    ? property.initializer.elements
    : [];
};

const returnedBy = (declaration: ts.SignatureDeclaration): ts.Node | undefined => {
  const body = "body" in declaration ? declaration.body : undefined;
  if (body === undefined || !ts.isBlock(body)) return body;
  let returned: ts.Expression | undefined;
  const visit = (node: ts.Node): void => {
    if (ts.isReturnStatement(node)) returned = node.expression ?? returned;
    else if (!ts.isFunctionLike(node)) ts.forEachChild(node, visit);
  };
  ts.forEachChild(body, visit);
  return returned;
};
