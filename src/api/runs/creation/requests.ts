import { context, isSpanContextValid, SpanKind, trace } from "@opentelemetry/api";
import { HandlerError } from "../../../access/auth/decisions.ts";
import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { ValueOf } from "../../../access/values.ts";
import { countedAs } from "../../../engine/queue/counted-as.ts";
import type { RunKwargs } from "../../../engine/queue/kwargs.ts";
import type { CreationRights, NewRun } from "../../../engine/queue/sql/create.ts";
import {
  isEmpty,
  withoutAuth,
  withoutAuthFields,
  withoutServerOwned,
} from "../../../graphs/configuration.ts";
import { validated } from "../../../http/validation.ts";
import type { Encryption } from "../../../platform/database/database.ts";
import { assistantIdOf } from "../../../platform/domain/assistant-ids.ts";
import { invalid, ThreadloomError } from "../../../platform/domain/errors.ts";
import { newId } from "../../../platform/lib/ids.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { ATTRIBUTES, SPANS } from "../../../platform/telemetry/names.ts";
import { traceContextOf, tracer, type TraceContext } from "../../../platform/telemetry/telemetry.ts";
import { runBody, threadlessRunBody, type RunBody, type ThreadlessRunBody } from "../schemas.ts";

interface GrantedRun<Body> {
  rights: CreationRights;
  /** With the changes of the project's handler. */
  body: Body;
  runId: string;
  /** Null if no user creates the run. */
  authUser: JsonObject | null;
  /** Limits count the run under this name, see engine/queue/counted-as.ts. */
  caller: string | null;
}

export const authUserOf = (caller: Caller): JsonObject | null =>
  caller.kind === "user" ? caller.user : null;

/** A handler's changes must pass the client's schema. */
const revalidated = <Body extends RunBody | ThreadlessRunBody>(
  body: Body,
  { metadata, kwargs, multitask_strategy, if_not_exists, after_seconds }: ValueOf<"threads", "create_run">,
): Body => {
  const given = { ...kwargs, metadata, multitask_strategy, if_not_exists, after_seconds };
  try {
    const schema = "on_completion" in body ? threadlessRunBody : runBody;
    return validated(schema, { ...body, ...given }, "The run") as Body;
  } catch (cause) {
    if (!(cause instanceof ThreadloomError)) throw cause;
    throw new HandlerError("The handler of threads:create_run left a run that can't be taken.", { cause });
  }
};

/** The caller must be able to read the assistant, since the run would reveal it. */
export const createRunGrants =
  (authorize: Authorize, encryption: Encryption) =>
  async <Body extends RunBody | ThreadlessRunBody>(
    caller: Caller,
    body: Body,
    threadId: string | undefined,
  ): Promise<GrantedRun<Body>> => {
    const runId = newId();
    const { assistant_id: reference, metadata = {}, ...rest } = body;
    const { multitask_strategy, if_not_exists, after_seconds, ...kwargs } = rest;
    const assistantId = assistantIdOf(reference);
    const asked = {
      ...{ thread_id: threadId, assistant_id: assistantId, run_id: runId, status: "pending" as const },
      ...{ metadata, multitask_strategy, if_not_exists, after_seconds, kwargs },
    };
    const threads = await authorize(caller, "threads", "create_run", asked);
    const assistants = await authorize(caller, "assistants", "read", { assistant_id: assistantId });
    return {
      rights: { threads, assistants },
      // A handler gets a copy. Without one, the request is valid already.
      body: threads.value === asked ? body : revalidated(body, threads.value),
      runId,
      authUser: authUserOf(caller),
      caller: countedAs(encryption, caller),
    };
  };

export type Placement =
  { kind: "thread"; threadId: string; createIfMissing: boolean } | { kind: "threadless"; keep: boolean };

export interface RequestedRun {
  run: NewRun;
  placement: Placement;
  /** As the caller wrote it: an assistant's or a graph's id. */
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

/** A run starts at the root; a subgraph's checkpoint names the root's checkpoint in its map. */
const rootCheckpointId = (
  checkpoint: RunBody["checkpoint"] | RunKwargs["checkpoint"],
): string | undefined => {
  if (checkpoint === undefined || !checkpoint.checkpoint_ns) return checkpoint?.checkpoint_id;
  const root = checkpoint.checkpoint_map?.[""];
  if (typeof root === "string") return root;
  throw invalid(
    "'checkpoint' names a subgraph; its 'checkpoint_map' must name the checkpoint of the root graph as ''.",
  );
};

/** LangGraph tells by a subgraph's own id that the run forks from there. */
const startOf = (checkpoint: RunBody["checkpoint"], checkpointId: string): RunKwargs["checkpoint"] =>
  (checkpoint?.checkpoint_ns
    ? checkpoint
    : { ...checkpoint, checkpoint_id: checkpointId }) as RunKwargs["checkpoint"];

/** As JSON: members without a value are not stored. */
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
    // Chat front ends send `input: {}` along with a command.
    ...(body.command === undefined
      ? { input: body.input }
      : { command: body.command as RunKwargs["command"] }),
    ...(checkpointId === undefined ? {} : { checkpoint: startOf(checkpoint, checkpointId) }),
    interrupt_before: body.interrupt_before,
    interrupt_after: body.interrupt_after,
    stream_mode: body.stream_mode,
    stream_subgraphs: body.stream_subgraphs,
    durability: durabilityOf(body),
    on_disconnect: body.on_disconnect,
    feedback_keys: body.feedback_keys,
    webhook: body.webhook,
    langsmith_tracer: body.langsmith_tracer,
    ...(body.strict_resume === true ? { strict_resume: true } : {}),
    ...(headers === undefined ? {} : { headers: withoutServerOwned(headers) as Record<string, string> }),
    ...(eventStreaming === true ? { event_streaming: true } : {}),
  };
};

/**
 * The thread keeps only the fields from which a factory may build its graph. Tags, limits and the start belong to one
 * run.
 */
const keptOf = ({ config, context }: RunBody | ThreadlessRunBody): NewRun["keptConfig"] => {
  const configurable = withoutServerOwned((config?.configurable as JsonObject | undefined) ?? {});
  const kept = {
    ...(isEmpty(configurable) ? {} : { configurable }),
    ...(context === undefined || isEmpty(context) ? {} : { context: withoutAuthFields(context) }),
  };
  return isEmpty(kept) ? undefined : (kept as JsonObject);
};

/** Equal addresses get one form, for example `http://127.1` and `http://2130706433`. */
const usualSpelling = (webhook: string): string =>
  !webhook.startsWith("/") && URL.canParse(webhook) ? new URL(webhook).href : webhook;

/**
 * A span for the creation of a run, below the request. All attempts are its children. Undefined without OpenTelemetry.
 */
const exportCreation = (runId: string, threadId: string): TraceContext | undefined => {
  const attributes = { [ATTRIBUTES.run]: runId, [ATTRIBUTES.conversation]: threadId };
  const span = tracer().startSpan(SPANS.creation, { kind: SpanKind.PRODUCER, attributes });
  if (!isSpanContextValid(span.spanContext())) return undefined;
  span.end();
  return traceContextOf(trace.setSpan(context.active(), span));
};

interface BesideBody {
  runId: string;
  authUser: JsonObject | null;
  /** See NewRun. */
  caller: string | null;
  /** The process that streams the run to its creator, or null. */
  readerId: string | null;
  /** The run's events go to event streaming, and all are logged. */
  eventStreaming?: boolean;
  /** See NewRun. */
  turnsSeen?: number | undefined;
  /** Headers for the graph's configuration. */
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
  const threadId = isOnThread ? placement.threadId : newId();
  const trace_context = exportCreation(runId, threadId);
  return {
    run: {
      runId,
      threadId,
      assistantId: assistantIdOf(body.assistant_id),
      multitaskStrategy: isOnThread ? body.multitask_strategy : "enqueue",
      metadata: body.metadata ?? {},
      config: withoutAuth(body.config ?? {}),
      context: withoutAuthFields(body.context ?? {}),
      authUser,
      caller,
      keptConfig: keptOf(body),
      kwargs: JSON.stringify(trace_context === undefined ? kwargs : { ...kwargs, trace_context }),
      resumable: body.stream_resumable || eventStreaming,
      deleteThread: !isOnThread && !placement.keep,
      afterSeconds: body.after_seconds ?? 0,
      webhook: body.webhook === undefined ? null : usualSpelling(body.webhook),
      readerId,
      turnsSeen,
    },
    placement,
    assistant: body.assistant_id,
    checkpointId: rootCheckpointId(kwargs.checkpoint),
  };
};
