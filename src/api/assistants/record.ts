import type { AssistantRow, AssistantVersionRow } from "../../platform/database/tables.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import type { Assistant } from "./schemas.ts";

export const toAssistant = (row: AssistantRow): Assistant => ({
  ...row,
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
