import ts from "typescript";

/** Undefined if missing or `any`. */
interface GraphTypes {
  state: ts.Type | undefined;
  input: ts.Type | undefined;
  output: ts.Type | undefined;
  context: readonly { symbol: ts.Symbol; type: ts.Type }[];
}

/** A promise of a factory of a builder is three steps. */
const STEPS_AT_MOST = 6;

/** Looks up LangGraph's type-only properties by name, because the order of type parameters differs between versions. */
export const createGraphTypes = (checker: ts.TypeChecker) => {
  const propertyType = (type: ts.Type, ...names: string[]): ts.Type | undefined => {
    for (const name of names) {
      const property = checker.getPropertyOfType(type, name);
      if (property !== undefined) return checker.getTypeOfSymbol(property);
    }
    return undefined;
  };
  const returned = (type: ts.Type | undefined): ts.Type | undefined => {
    const signature = type?.getCallSignatures().at(-1);
    return signature === undefined ? undefined : checker.getReturnTypeOfSignature(signature);
  };

  /** The type-level form of compiledGraph. */
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

  /** Only objects: the functional API may take a text or a list. */
  const withFields = (type: ts.Type | undefined): ts.Type | undefined => {
    if (type === undefined) return undefined;
    // The functional API's output is the function's promise.
    const value = checker.getNonNullableType(checker.getAwaitedType(type) ?? type);
    const isObject = (value.flags & (ts.TypeFlags.Object | ts.TypeFlags.UnionOrIntersection)) !== 0;
    if (!isObject || checker.isArrayLikeType(value)) return undefined;
    // A state declared by `channels` gives an input with any key. Such an input says nothing.
    return checker.getPropertiesOfType(value).length > 0 ? value : undefined;
  };

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
