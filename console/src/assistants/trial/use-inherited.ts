import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { useSchemas } from "../../parts/assistants.ts";
import { isObject } from "../../parts/is-object.ts";
import { useOneAssistant } from "../queries.ts";

const fieldsOf = (value: unknown): string[] => (isObject(value) ? Object.keys(value) : []);

interface Inherited {
  /** The defaults in the schema of the context, for the fields that the default assistant sets. */
  defaults: object;
  /** The other fields that a version gets from the default assistant of its graph. */
  fieldsFor(version: Pick<AssistantVersion, "context" | "config">): string[];
}

/** Undefined until both the default assistant and the schema are known. */
export const useInherited = ({ graph_id: graphId }: Pick<Assistant, "graph_id">): Inherited | undefined => {
  const { data: ofGraph } = useOneAssistant(graphId);
  const schemas = useSchemas(graphId);
  if (ofGraph === undefined || schemas.isPending) return undefined;
  const properties: unknown = schemas.data?.context_schema?.properties;
  const defaults = Object.fromEntries(
    fieldsOf(ofGraph.context).flatMap((name): [string, unknown][] => {
      const property: unknown =
        isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
      return isObject(property) && Object.hasOwn(property, "default") ? [[name, property["default"]]] : [];
    }),
  );
  return {
    defaults,
    fieldsFor: ({ context, config }) => [
      ...fieldsOf(ofGraph.context).filter(
        (name) => !Object.hasOwn(defaults, name) && !fieldsOf(context).includes(name),
      ),
      ...fieldsOf(ofGraph.config).filter((name) => !fieldsOf(config).includes(name)),
    ],
  };
};
