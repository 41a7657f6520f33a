import { v5 } from "uuid";
import { isUuid } from "../lib/ids.ts";

/**
 * Namespace of the ids of system assistants. Part of the wire: clients compute `uuid5(graph_id)` themselves (`agent` is
 * `fe096781-5601-53d2-b2f6-0d3403f7e9ca`).
 */
const SYSTEM_ASSISTANT_NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

/** The id of the assistant that exists from the start for a graph. */
export const systemAssistantId = (graphId: string): string => v5(graphId, SYSTEM_ASSISTANT_NAMESPACE);

/**
 * The assistant's id for a reference: a UUID, or the id of a graph for its system assistant. Does not check that the
 * assistant exists.
 */
export const assistantIdOf = (reference: string): string =>
  isUuid(reference) ? reference : systemAssistantId(reference);
