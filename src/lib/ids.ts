import { v5, v7, validate } from "uuid";

/** A new UUIDv7: sortable by creation time, so that indexes on ids stay local. */
export const newId = (): string => v7();

export const isUuid = (text: string): boolean => validate(text);

/**
 * Namespace of the ids of system assistants. The value is part of the wire: clients compute
 * `uuid5(graph_id)` themselves (`agent` is `fe096781-5601-53d2-b2f6-0d3403f7e9ca`).
 */
const SYSTEM_ASSISTANT_NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

/** The id of the assistant that exists from boot for a graph. */
export const systemAssistantId = (graphId: string): string => v5(graphId, SYSTEM_ASSISTANT_NAMESPACE);
