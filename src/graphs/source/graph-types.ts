import ts from "typescript";

/** The types of a graph that LangGraph's type parameters hold. Undefined where it has none, or it is `any`. */
export interface GraphTypes {
  state: ts.Type | undefined;
  input: ts.Type | undefined;
  output: ts.Type | undefined;
  /** What the graph declares as its context, by key. */
  context: readonly { symbol: ts.Symbol; type: ts.Type }[];
}

/** A promise of a factory of a builder is three steps; nothing useful has more. */
const STEPS_AT_MOST = 6;

/**
 * Reads the types of graphs. LangGraph declares properties for them that are there for types only, so they are looked up
 * by name: that holds for any version that the user's project may have, where an order of type parameters would not.
 */
export const createGraphTypes = (checker: ts.TypeChecker) => {
  const propertyType = (type: ts.Type, ...names: string[]): ts.Type | undefined => {
    for (const name of names) {
      const property = checker.getPropertyOfType(type, name);
      if (property !== undefined) return checker.getTypeOfSymbol(property);
    }
    return undefined;
  };
  /** Its return type, whatever it takes. */
  const returned = (type: ts.Type | undefined): ts.Type | undefined => {
    const signature = type?.getCallSignatures().at(-1);
    return signature === undefined ? undefined : checker.getReturnTypeOfSignature(signature);
  };

  /** The compiled graph in whatever a project exports: see compiledGraph, which does the same with values. */
  const compiledType = (exported: ts.Type, steps = 0): ts.Type | undefined => {
    if (steps > STEPS_AT_MOST) return undefined;
    const type = checker.getNonNullableType(checker.getAwaitedType(exported) ?? exported);
    if (type.isUnion()) {
      for (const member of type.types) {
        const found = compiledType(member, steps + 1);
        if (found !== undefined) return found;
      }
      return undefined;
    }
    if (propertyType(type, "lg_is_pregel") !== undefined) return type;
    const wrapped = propertyType(type, "graph");
    if (wrapped !== undefined && propertyType(wrapped, "lg_is_pregel") !== undefined) return wrapped;
    const made = returned(propertyType(type, "compile")) ?? returned(type);
    return made === undefined ? undefined : compiledType(made, steps + 1);
  };

  /** A type whose fields can be told: none of a text or a list, which the functional API may take. */
  const withFields = (type: ts.Type | undefined): ts.Type | undefined => {
    if (type === undefined) return undefined;
    // The output of the functional API is the promise that its function returns.
    const value = checker.getNonNullableType(checker.getAwaitedType(type) ?? type);
    const isObject = (value.flags & (ts.TypeFlags.Object | ts.TypeFlags.UnionOrIntersection)) !== 0;
    if (!isObject || checker.isArrayLikeType(value)) return undefined;
    // The state of a graph that is declared by `channels` is no definition of its input, which then has any key.
    return checker.getPropertiesOfType(value).length > 0 ? value : undefined;
  };

  /** What a channel holds: it is declared as itself or as a function that makes it. */
  const channelValue = (channel: ts.Type): ts.Type | undefined =>
    propertyType(channel, "ValueType") ?? propertyType(returned(channel) ?? channel, "ValueType");

  const contextOf = (graph: ts.Type): GraphTypes["context"] => {
    const builder = propertyType(graph, "builder");
    const declared = withFields(builder && propertyType(builder, "_configSchema"));
    if (declared === undefined) return [];
    return checker.getPropertiesOfType(declared).flatMap((symbol) => {
      const type = channelValue(checker.getTypeOfSymbol(symbol));
      return type === undefined ? [] : [{ symbol, type }];
    });
  };

  return {
    /** Undefined if the type is none of a graph. */
    of(exported: ts.Type): GraphTypes | undefined {
      const graph = compiledType(exported);
      if (graph === undefined) return undefined;
      const state = withFields(propertyType(graph, "~RunOutput", "RunInput"));
      const update = withFields(propertyType(graph, "~RunInput", "RunOutput"));
      return {
        state,
        input: withFields(propertyType(graph, "~InputType")) ?? update,
        output: withFields(propertyType(graph, "~OutputType")) ?? state,
        context: contextOf(graph),
      };
    },
  };
};
