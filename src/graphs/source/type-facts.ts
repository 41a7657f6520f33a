import ts from "typescript";
import type { JsonObject } from "../../platform/lib/json.ts";

const INHERITANCE_AT_MOST = 10;
const PROPERTIES_AT_MOST = 200;
const DESCRIPTION_CHARACTERS = 1_000;

const IN_CORE = /[\\/]@langchain[\\/]core[\\/]/;
const IN_NODE_TYPES = /[\\/]node_modules[\\/]@types[\\/]node[\\/]/;

const HIDDEN = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;

export const createTypeFacts = (program: ts.Program) => {
  const checker = program.getTypeChecker();

  const isDeclaredIn = (symbol: ts.Symbol, holds: (file: ts.SourceFile) => boolean): boolean =>
    symbol.declarations?.some((declaration) => holds(declaration.getSourceFile())) ?? false;

  /** LangChain's `BaseMessage`, a subclass, or a union with one. */
  const isMessage = (type: ts.Type, depth = 0): boolean => {
    if (type.isUnion()) return type.types.some((member) => isMessage(member, depth));
    const symbol = type.getSymbol();
    if (symbol === undefined || depth > INHERITANCE_AT_MOST) return false;
    if (symbol.name === "BaseMessage" && isDeclaredIn(symbol, ({ fileName }) => IN_CORE.test(fileName)))
      return true;
    const declared = checker.getDeclaredTypeOfSymbol(symbol);
    if (!declared.isClassOrInterface()) return false;
    return checker.getBaseTypes(declared).some((base) => isMessage(base, depth + 1));
  };

  return {
    isMessage,
    isMessages(type: ts.Type): boolean {
      if (type.isUnion()) return type.types.some((member) => this.isMessages(member));
      if (!checker.isArrayType(type)) return false;
      const [item] = checker.getTypeArguments(type as ts.TypeReference);
      return item !== undefined && isMessage(item);
    },

    builtInName(type: ts.Type): string | undefined {
      const symbol = type.getSymbol();
      if (symbol === undefined || (symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface)) === 0)
        return undefined;
      const isBuiltIn = (file: ts.SourceFile): boolean =>
        program.isSourceFileDefaultLibrary(file) || IN_NODE_TYPES.test(file.fileName);
      return isDeclaredIn(symbol, isBuiltIn) ? symbol.name : undefined;
    },

    isFunction(type: ts.Type): boolean {
      const value = checker.getNonNullableType(type);
      return value.getCallSignatures().length > 0 || value.getConstructSignatures().length > 0;
    },

    /** LangGraph's wrapper of an update that replaces a value. */
    isOverwrite: (type: ts.Type): boolean => type.getProperty("__overwrite__") !== undefined,

    fieldsOf: (type: ts.Type): ts.Symbol[] =>
      checker
        .getPropertiesOfType(type)
        .filter(({ name, declarations = [] }) => {
          // Internal names of symbols and of `#private` fields.
          if (name.startsWith("__@") || name.startsWith("#")) return false;
          return !declarations.some(
            (declaration) => (ts.getCombinedModifierFlags(declaration) & HIDDEN) !== 0,
          );
        })
        .slice(0, PROPERTIES_AT_MOST),

    acceptsNothing(property: ts.Symbol, type: ts.Type): boolean {
      const open = ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.VoidLike;
      if ((property.flags & ts.SymbolFlags.Optional) !== 0 || (type.flags & open) !== 0) return true;
      return type.isUnion() && type.types.some(({ flags }) => (flags & ts.TypeFlags.VoidLike) !== 0);
    },

    descriptionOf(symbol: ts.Symbol): JsonObject {
      const text = ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim();
      return text === "" ? {} : { description: text.slice(0, DESCRIPTION_CHARACTERS) };
    },
  };
};

export type TypeFacts = ReturnType<typeof createTypeFacts>;
