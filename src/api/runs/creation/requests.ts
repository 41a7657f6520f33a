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

/** Where a run goes: on a thread, on a thread that may have to be made, or on one of its own. */
export type Placement =
  { kind: "thread"; threadId: string; createIfMissing: boolean } | { kind: "threadless"; keep: boolean };

/** A run as it was asked for. */
export interface RequestedRun {
  run: NewRun;
  placement: Placement;
  /** The assistant as the caller named it: by its id, or by its graph's. */
  assistant: string;
  /** Where the run starts, if not at the newest state. */
  checkpointId: string | undefined;
}

/** The same, with what its caller may do. */
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
 * The checkpoint of the root graph that a reference means. One of a subgraph names it in its map; the run starts at
 * the root, which takes the subgraph along.
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
    // With both, the command wins: chat front ends send `input: {}` along.
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
 * What the thread keeps of a run's configuration: what its graph may be built from. Not the tags and limits, which are
 * those of one run, and not where it starts.
 */
const keptOf = ({ config, context }: RunBody | ThreadlessRunBody): NewRun["keptConfig"] => {
  const configurable = withoutServerOwned((config?.configurable as JsonObject | undefined) ?? {});
  const kept = {
    ...(isEmpty(configurable) ? {} : { configurable }),
    ...(context === undefined || isEmpty(context) ? {} : { context: withoutAuthFields(context) }),
  };
  return isEmpty(kept) ? undefined : (kept as JsonObject);
};

/** One spelling for all that name the same receiver, as `http://127.1` and `http://2130706433` do. */
const usualSpelling = (webhook: string): string =>
  !webhook.startsWith("/") && URL.canParse(webhook) ? new URL(webhook).href : webhook;

/** What a run has that its body does not say: who reads along from the first event on, above all. */
export interface BesideBody {
  runId: string;
  /** The user whose run it is; null if no user creates it. */
  authUser: JsonObject | null;
  /** See NewRun. */
  caller: string | null;
  /** The process that streams the run to its creator over the first wire; null if none does. */
  readerId: string | null;
  /** The run is one of event streaming: its events are told over that wire, too, and all of them are logged. */
  eventStreaming?: boolean;
  /** See NewRun. */
  turnsSeen?: number | undefined;
  /** Headers of its request that its graph finds in its configuration. */
  headers?: Readonly<Record<string, string>> | undefined;
}

/**
 * What a body asks for, under new ids.
 * Throws `invalid` for a checkpoint of a subgraph that doesn't say where it belongs.
 */
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
