import type { JsonObject } from "../../platform/lib/json.ts";
import type { Origins } from "./origins.ts";

/** A JSON schema per key. Each is its own document, with recursive types in `definitions`. */
export type Properties = Record<string, JsonObject>;

export interface SourceSchemas {
  state: Properties;
  input: Properties;
  output: Properties;
  context: Properties;
}

export interface ExtractionRequest {
  /** Absolute. */
  folder: string;
  /** `file`: absolute. */
  entries: readonly { id: string; file: string; exportName: string }[];
}

/** JSON, to be sent between processes and cached. */
export interface Extraction {
  /** By graph id and namespace (`""`: the graph itself). Pairs, because an id may be `__proto__`. */
  graphs: [id: string, schemas: [namespace: string, schemas: SourceSchemas][]][];
  /** Graphs on which TypeScript failed. */
  failures: [id: string, message: string][];
  origins: Origins;
  /** False if an imported module is missing. The module may appear without a change of the origins. */
  isComplete: boolean;
}
