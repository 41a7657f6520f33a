import { ENCRYPTED_KWARGS } from "../../platform/encryption/columns.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";

export type Goto = string | { node: string; input?: unknown };

interface RunCommand {
  update?: JsonValue | unknown[];
  resume?: unknown;
  goto?: Goto | Goto[];
}

interface CheckpointReference {
  checkpoint_id?: string;
  checkpoint_ns?: string;
  checkpoint_map?: JsonObject | null;
}

/** Stored in `runs.kwargs` and shown in `Run.kwargs`. Metadata, config and context have their own columns. */
export interface RunKwargs {
  input?: unknown;
  command?: RunCommand;
  checkpoint?: CheckpointReference;
  interrupt_before?: "*" | string[];
  interrupt_after?: "*" | string[];
  stream_mode: string[];
  stream_subgraphs: boolean;
  durability: "sync" | "async" | "exit";
  on_disconnect?: "cancel" | "continue";
  feedback_keys?: string[];
  webhook?: string;
  /** Where LangSmith keeps the run's trace, if tracing is on. */
  langsmith_tracer?: { project_name?: string | undefined; example_id?: string | undefined };
  /** Refuses an answer to an interrupt that is not pending. */
  strict_resume?: boolean;
  /** Not in `config`, so threads, checkpoints and clients do not get the headers. */
  headers?: Record<string, string>;
  /** Also publish events for event streaming. Internal: clients do not see this field. */
  event_streaming?: true;
  /** Of the request, for OpenTelemetry. Internal, as above. */
  trace_context?: Readonly<Record<string, string>>;
}

/** Fails to compile if an encrypted key (platform/encryption/columns.ts) is not a key of `RunKwargs`. */
ENCRYPTED_KWARGS satisfies readonly (keyof RunKwargs)[];
