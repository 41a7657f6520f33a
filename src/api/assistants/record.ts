import type { AssistantRow, AssistantVersionRow } from "../../platform/database/tables.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import type { Assistant } from "./schemas.ts";

export const toAssistant = (row: AssistantRow): Assistant => ({
  assistant_id: row.assistant_id,
  graph_id: row.graph_id,
  name: row.name,
  description: row.description,
  config: row.config,
  context: row.context,
  metadata: row.metadata,
  version: row.version,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
});

/** A version never changes, so both times are equal. */
export const toVersion = (row: AssistantVersionRow): Assistant =>
  toAssistant({ ...row, updated_at: row.created_at });

export const toExtract = ({
  created_at,
  updated_at,
  ...rest
}: Partial<AssistantRow>): Partial<Assistant> => ({
  ...rest,
  ...(created_at === undefined ? {} : { created_at: timestamp(created_at) }),
  ...(updated_at === undefined ? {} : { updated_at: timestamp(updated_at) }),
});
