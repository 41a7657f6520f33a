import type { JsonObject } from "../../platform/lib/json.ts";
import type { Origins } from "./origins.ts";

/** The JSON schema of each key of an object. Each is a document of its own: a recursive type stands in its `definitions`. */
export type Properties = Record<string, JsonObject>;

/** What the types of a graph say: a JSON schema for each key. */
export interface SourceSchemas {
  state: Properties;
  input: Properties;
  output: Properties;
  context: Properties;
}

export interface ExtractionRequest {
  /** Absolute path of the project's folder. */
  folder: string;
  /** `file`: absolute path of the module. */
  entries: readonly { id: string; file: string; exportName: string }[];
}

/** What was read from the source of all graphs of a project. JSON, so that it can be sent and kept. */
export interface Extraction {
  /** By id of the graph, then by namespace of the subgraph; `""` is the graph itself. Pairs: ids may be `__proto__`. */
  graphs: [id: string, schemas: [namespace: string, schemas: SourceSchemas][]][];
  /** Graphs on which TypeScript itself failed: they are left out. */
  failures: [id: string, message: string][];
  origins: Origins;
  /** False if a module was not found: it may be there the next time, though none of the origins has changed. */
  isComplete: boolean;
}
