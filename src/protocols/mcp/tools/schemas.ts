import type { GraphSchemas } from "../../../graphs/json-schemas.ts";
import { isJsonObject, type JsonObject } from "../../../platform/lib/json.ts";

/** Arguments of the server, unless the graph's input has a field of this name. */
export const THREAD_ID = "thread_id";
export const RESUME = "resume";

const OWN: JsonObject = {
  [THREAD_ID]: {
    type: "string",
    format: "uuid",
    description:
      "Continues the conversation of this id, or begins it. Choose a new UUID if you may want to go on later, or to answer questions of this tool.",
  },
  [RESUME]: {
    description:
      "The answer to a question that the last call with this thread_id asked. The other arguments then count for nothing.",
  },
};

const propertiesOf = ({ properties }: JsonObject): JsonObject => (isJsonObject(properties) ? properties : {});

export const hasOwnField = (schemas: GraphSchemas, name: string): boolean =>
  Object.hasOwn(propertiesOf(schemas.input_schema), name);

export const inputSchemaOf = ({ input_schema: input }: GraphSchemas): JsonObject => ({
  ...input,
  type: "object",
  properties: { ...OWN, ...propertiesOf(input) },
});

/** Clients check results. A graph may end before it has set every field of its state. */
export const outputSchemaOf = ({ output_schema: output }: GraphSchemas): JsonObject => {
  const { required: _, ...schema } = output;
  return { ...schema, type: "object" };
};
