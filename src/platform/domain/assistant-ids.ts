import { v5 } from "uuid";
import { isUuid } from "../lib/ids.ts";

/**
 * Part of the API: clients compute `uuid5(graph_id)` themselves (`agent` is `fe096781-5601-53d2-b2f6-0d3403f7e9ca`).
 */
const SYSTEM_ASSISTANT_NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

export const systemAssistantId = (graphId: string): string => v5(graphId, SYSTEM_ASSISTANT_NAMESPACE);

/** A UUID is the id itself; a graph id names its system assistant. Does not check that the assistant exists. */
export const assistantIdOf = (reference: string): string =>
  isUuid(reference) ? reference : systemAssistantId(reference);
