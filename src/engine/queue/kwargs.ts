import { ENCRYPTED_KWARGS } from "../../platform/encryption/columns.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";

/** A jump to a node, with an input of its own or without. */
export type Goto = string | { node: string; input?: unknown };

/** `command` of a run: what to do to the graph instead of giving it an input. */
export interface RunCommand {
  update?: JsonValue | unknown[];
  resume?: unknown;
  goto?: Goto | Goto[];
}

/** The checkpoint that a run starts from. */
export interface CheckpointReference {
  checkpoint_id?: string;
  checkpoint_ns?: string;
  checkpoint_map?: JsonObject | null;
}

/**
 * What a run was asked to do, as `runs.kwargs` holds it and `Run.kwargs` shows it; metadata, config and context
 * have columns of their own. The names are the API's.
 */
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
  /** Refuse a resume that answers an interrupt which does not wait, instead of ignoring the answer. */
  strict_resume?: boolean;
  /**
   * Headers of the request that made it, which its graph finds in its configuration. Apart from `config`: neither the thread
   * keeps them for later runs, nor do checkpoints have them, nor are clients shown them.
   */
  headers?: Record<string, string>;
  /** Its events are told over the protocol wire, too. The server's own: clients are not shown it. */
  event_streaming?: true;
}

/** Fails to compile if what is sealed of it (platform/encryption/columns.ts) is not its. */
ENCRYPTED_KWARGS satisfies readonly (keyof RunKwargs)[];
