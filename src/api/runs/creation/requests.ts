import type { RunKwargs } from "../../../engine/queue/kwargs.ts";
import {
  isEmpty,
  withoutAuth,
  withoutAuthFields,
  withoutServerOwned,
} from "../../../graphs/configuration.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import { newId } from "../../../platform/lib/ids.ts";
import { assistantIdOf } from "../../../platform/domain/assistant-ids.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { CreationRights, NewRun } from "../../../engine/queue/sql/create.ts";
import type { RunBody, ThreadlessRunBody } from "../schemas.ts";

/** On a thread, on a thread that may have to be created, or on the run's own thread. */
export type Placement =
  { kind: "thread"; threadId: string; createIfMissing: boolean } | { kind: "threadless"; keep: boolean };

export interface RequestedRun {
  run: NewRun;
  placement: Placement;
  /** The assistant's id or its graph's id, as the caller wrote it. */
  assistant: string;
  /** Undefined: the run starts at the newest state. */
  checkpointId: string | undefined;
}

export interface GrantedRequest extends RequestedRun {
  rights: CreationRights;
}

const durabilityOf = (body: RunBody | ThreadlessRunBody): RunKwargs["durability"] =>
  body.durability ?? (body.checkpoint_during === false ? "exit" : "async");

const checkpointIdIn = (config: JsonObject | undefined): string | undefined => {
  const id = (config?.configurable as JsonObject | undefined)?.checkpoint_id;
  return typeof id === "string" ? id : undefined;
};

/**
 * The root graph's checkpoint. A subgraph's checkpoint names it in its map; the run starts at the root and includes the
 * subgraph.
 */
const rootCheckpointId = (checkpoint: RunBody["checkpoint"]): string | undefined => {
  if (checkpoint === undefined || !checkpoint.checkpoint_ns) return checkpoint?.checkpoint_id;
  const root = checkpoint.checkpoint_map?.[""];
  if (typeof root === "string") return root;
  throw invalid(
    "'checkpoint' names a subgraph; its 'checkpoint_map' must name the checkpoint of the root graph as ''.",
  );
};

const toKwargs = (
  body: RunBody | ThreadlessRunBody,
  {
    isOnThread,
    eventStreaming,
    headers,
  }: { isOnThread: boolean } & Pick<BesideBody, "eventStreaming" | "headers">,
): RunKwargs => {
  const checkpoint = isOnThread ? body.checkpoint : undefined;
  const checkpointId =
    rootCheckpointId(checkpoint) ??
    (isOnThread ? body.checkpoint_id : undefined) ??
    checkpointIdIn(body.config);
  return {
    // The command wins over an input: chat front ends send `input: {}` along.
    ...(body.command === undefined
      ? { input: body.input }
      : { command: body.command as RunKwargs["command"] }),
    ...(checkpointId === undefined
      ? {}
      : { checkpoint: { ...checkpoint, checkpoint_id: checkpointId } as RunKwargs["checkpoint"] }),
    ...(body.interrupt_before === undefined ? {} : { interrupt_before: body.interrupt_before }),
    ...(body.interrupt_after === undefined ? {} : { interrupt_after: body.interrupt_after }),
    stream_mode: body.stream_mode,
    stream_subgraphs: body.stream_subgraphs,
    durability: durabilityOf(body),
    on_disconnect: body.on_disconnect,
    ...(body.feedback_keys === undefined ? {} : { feedback_keys: body.feedback_keys }),
    ...(body.webhook === undefined ? {} : { webhook: body.webhook }),
    ...(body.strict_resume === true ? { strict_resume: true } : {}),
    ...(headers === undefined ? {} : { headers: withoutServerOwned(headers) as Record<string, string> }),
    ...(eventStreaming === true ? { event_streaming: true } : {}),
  };
};

/**
 * The part of a run's configuration that the thread keeps, since its graph may be built from it. Tags, limits and the
 * start checkpoint belong to one run.
 */
const keptOf = ({ config, context }: RunBody | ThreadlessRunBody): NewRun["keptConfig"] => {
  const configurable = withoutServerOwned((config?.configurable as JsonObject | undefined) ?? {});
  const kept = {
    ...(isEmpty(configurable) ? {} : { configurable }),
    ...(context === undefined || isEmpty(context) ? {} : { context: withoutAuthFields(context) }),
  };
  return isEmpty(kept) ? undefined : (kept as JsonObject);
};

/** Normalizes equal addresses, for example `http://127.1` and `http://2130706433`. */
const usualSpelling = (webhook: string): string =>
  !webhook.startsWith("/") && URL.canParse(webhook) ? new URL(webhook).href : webhook;

/** The properties of a run that its body does not have. */
export interface BesideBody {
  runId: string;
  /** The user who owns the run; null if no user creates it. */
  authUser: JsonObject | null;
  /** See NewRun. */
  caller: string | null;
  /** The process that streams the run to its creator (streams of runs); null if none does. */
  readerId: string | null;
  /** A run of event streaming: that wire gets its events, too, and all of them are logged. */
  eventStreaming?: boolean;
  /** See NewRun. */
  turnsSeen?: number | undefined;
  /** Request headers that the graph finds in its configuration. */
  headers?: Readonly<Record<string, string>> | undefined;
}

/** Throws `invalid` for a subgraph's checkpoint without the root's. */
export const requestedRun = (
  body: RunBody | ThreadlessRunBody,
  placement: Placement,
  { runId, authUser, caller, readerId, eventStreaming = false, turnsSeen, headers }: BesideBody,
): RequestedRun => {
  const isOnThread = placement.kind === "thread";
  const kwargs = toKwargs(body, { isOnThread, eventStreaming, headers });
  return {
    run: {
      runId,
      threadId: isOnThread ? placement.threadId : newId(),
      assistantId: assistantIdOf(body.assistant_id),
      multitaskStrategy: isOnThread ? body.multitask_strategy : "enqueue",
      metadata: body.metadata ?? {},
      config: withoutAuth(body.config ?? {}),
      context: withoutAuthFields(body.context ?? {}),
      authUser,
      caller,
      keptConfig: keptOf(body),
      kwargs: JSON.stringify(kwargs),
      resumable: body.stream_resumable || eventStreaming,
      deleteThread: !isOnThread && !placement.keep,
      afterSeconds: body.after_seconds ?? 0,
      webhook: body.webhook === undefined ? null : usualSpelling(body.webhook),
      readerId,
      turnsSeen,
    },
    placement,
    assistant: body.assistant_id,
    checkpointId: kwargs.checkpoint?.checkpoint_id,
  };
};
