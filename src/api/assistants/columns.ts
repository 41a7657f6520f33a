import { sql, type SqlBool } from "kysely";
import type { PageColumns, PageWeight } from "../../platform/database/bounded-reads.ts";
import { encryptedParameter } from "../../platform/database/statement.ts";
import type { AssistantRow, AssistantVersionRow } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { ASSISTANT_FIELDS } from "./schemas.ts";

export const COLUMNS = ASSISTANT_FIELDS satisfies readonly (keyof AssistantRow)[];
export const SNAPSHOT = [
  "assistant_id",
  "version",
  "graph_id",
  "name",
  "description",
  "config",
  "context",
  "metadata",
  "created_at",
] as const satisfies (keyof AssistantVersionRow)[];

interface StoredAssistant extends Record<"config" | "context" | "metadata", JsonObject> {
  assistantId: string;
}
const idOf = ({ assistantId }: StoredAssistant) => ({ assistant_id: assistantId });
export const ASSISTANT_PARAMETERS = {
  assistantId: "uuid",
  graphId: "text",
  name: "text",
  description: "text",
  config: encryptedParameter("assistants", "config", ({ config }: StoredAssistant) => config, idOf),
  context: encryptedParameter("assistants", "context", ({ context }: StoredAssistant) => context, idOf),
  metadata: encryptedParameter("assistants", "metadata", ({ metadata }: StoredAssistant) => metadata, idOf),
} as const;

export const LONG_COLUMNS = ["config", "context", "metadata"] as const;
export const weightOf = (sent: readonly string[]): PageWeight => ({
  columns: LONG_COLUMNS.filter((column) => sent.includes(column)),
});

export type CountedRow<Row> = Row & PageColumns & { total: number };

export const toRow = <Row>({ total: _, weight_before: __, page_rows: ___, ...row }: CountedRow<Row>) => row;

export const contains = (metadata: JsonObject) =>
  sql<SqlBool>`metadata @> ${JSON.stringify(metadata)}::jsonb`;
