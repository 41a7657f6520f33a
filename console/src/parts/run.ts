import { durationText } from "./time.tsx";

/** From `/runs/search`. Older servers and a `select` leave fields out. */
export interface Run {
  run_id: string;
  thread_id: string;
  assistant_id: string;
  graph_id?: string;
  status: string;
  created_at: string;
  run_started_at?: string | null;
  run_ended_at?: string | null;
  available_at?: string;
  attempts?: number;
  lost_attempts?: number;
  multitask_strategy?: string;
  error?: ({ error?: unknown; message?: unknown } & Record<string, unknown>) | null;
  metadata?: Record<string, unknown>;
}

/** Without metadata, which may be large. */
export const LISTED_FIELDS = [
  "run_id",
  "thread_id",
  "assistant_id",
  "graph_id",
  "status",
  "created_at",
  "run_started_at",
  "run_ended_at",
  "available_at",
  "attempts",
  "lost_attempts",
  "error",
] as const;

export const RUN_STATUSES = ["pending", "running", "success", "error", "timeout", "interrupted"] as const;

export const isOver = ({ status }: Pick<Run, "status">): boolean =>
  status !== "pending" && status !== "running";

export const durationOf = (
  { run_started_at: started, run_ended_at: ended }: Run,
  now: number,
): string | undefined => {
  if (started == null) return undefined;
  // The server's clock may be ahead of the browser's.
  return durationText(Math.max(0, (ended == null ? now : Date.parse(ended)) - Date.parse(started)));
};

const ORIGINS = new Map<unknown, string>([
  ["mcp", "MCP"],
  ["a2a", "A2A"],
  ["agui", "AG-UI"],
]);

/** The protocol through which a run was created; undefined for the API. */
export const originOf = ({ metadata }: Run): string | undefined => ORIGINS.get(metadata?.["origin"]);

const asText = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "");

export const errorLine = ({ error }: Run): string =>
  error == null ? "" : `${asText(error.error)}: ${asText(error.message)}`.replace(/\s+/g, " ").slice(0, 300);
