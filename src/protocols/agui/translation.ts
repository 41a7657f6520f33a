import {
  EventType,
  PROTOCOL_VERSION,
  type Event,
  type Interrupt as AgUiInterrupt,
  type RunAgentInput,
  type RunFinishedOutcome,
  type JsonPatch,
} from "@ag-ui/core";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";
import { type CallEvent, picked, type Interrupt, type Outcome } from "../calls/outcome.ts";
import { speaksOne } from "./schemas.ts";
import { roleOf, toAgUiMessages } from "./messages.ts";
import { createOpenMessages, createPageSnapshots } from "./open-messages.ts";
import { createHash } from "node:crypto";

/** Undefined if the graph keeps something else under this name. */
const messagesIn = ({ messages }: JsonObject): JsonValue[] | undefined =>
  Array.isArray(messages) &&
  messages.every((message) => isJsonObject(message) && roleOf(message) !== undefined)
    ? messages
    : undefined;

/** Shown whatever the graph returns, as by LangGraph's own AG-UI package. */
const ALWAYS_SHOWN = ["messages", "tools"];

/** Messages have events of their own. `outputKeys`: undefined for all. */
const stateOf = (values: JsonObject, outputKeys: readonly string[] | undefined): JsonObject => {
  const { __interrupt__: _waiting, ...whole } = values;
  const state = outputKeys === undefined ? whole : picked(whole, [...outputKeys, ...ALWAYS_SHOWN]);
  if (messagesIn(values) !== undefined) delete state["messages"];
  return state;
};

const stringIn = (value: unknown, ...names: string[]): string | undefined =>
  isJsonObject(value)
    ? names
        .map((name) => (Object.hasOwn(value, name) ? value[name] : undefined))
        .find((found) => typeof found === "string")
    : undefined;

/** A graph may name these fields in the value of its `interrupt()`, as for LangGraph's own AG-UI package. */
export const toAgUiInterrupt = ({ id, value }: Interrupt): AgUiInterrupt => {
  const message = typeof value === "string" ? value : stringIn(value, "message");
  const toolCallId = stringIn(value, "toolCallId", "tool_call_id");
  const expiresAt = stringIn(value, "expiresAt", "expires_at");
  const schema = isJsonObject(value) ? (value["responseSchema"] ?? value["response_schema"]) : undefined;
  return {
    id,
    reason: stringIn(value, "reason") ?? "langgraph:interrupt",
    ...(message === undefined ? {} : { message }),
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(isJsonObject(schema) ? { responseSchema: schema } : {}),
    ...(expiresAt === undefined || Number.isNaN(Date.parse(expiresAt)) ? {} : { expiresAt }),
    metadata: { langgraph: { raw: value } },
  };
};

type Asked = Pick<RunAgentInput, "threadId" | "runId" | "messages" | "protocolVersion" | "parentRunId">;

export interface TranslationParts {
  slicer: TimeSlicer;
  /** Of the graph: what the page's state has. Undefined: everything. */
  outputKeys: readonly string[] | undefined;
}

/** A run's events as AG-UI's, in the dialect of the request. Every stream satisfies `verifyEvents` of the clients. */
export const createTranslation = (asked: Asked, { slicer, outputKeys }: TranslationParts) => {
  const { threadId, runId, parentRunId } = asked;
  const isOne = speaksOne(asked);
  const snapshotsOf = createPageSnapshots(asked.messages);
  let messages = createOpenMessages();
  let changes: ReturnType<typeof createStateChanges> | undefined;
  /** Names of nodes by their tasks. */
  const tasks = new Map<string, string>();
  /** The number of tasks, by node. */
  const active = new Map<string, number>();
  /** Tasks that had ended before the attempt began. Set until its first task begins. */
  let ended: ReadonlySet<unknown> = new Set();
  let isHalfDone = false;

  /** Tasks of the same node that run at once are one step. */
  function* beginTask(id: string, name: string): Generator<Event> {
    if (tasks.has(id) || ended.has(id)) return;
    tasks.set(id, name);
    const count = active.get(name) ?? 0;
    active.set(name, count + 1);
    if (count === 0) yield { type: EventType.STEP_STARTED, stepName: name };
  }

  function* endTask(id: string): Generator<Event> {
    const name = tasks.get(id);
    if (name === undefined) return;
    tasks.delete(id);
    yield* messages.endTask(id);
    const count = (active.get(name) ?? 1) - 1;
    if (count > 0) return void active.set(name, count);
    active.delete(name);
    yield { type: EventType.STEP_FINISHED, stepName: name };
  }

  function* closeAll(): Generator<Event> {
    yield* messages.endAll();
    for (const name of active.keys()) yield { type: EventType.STEP_FINISHED, stepName: name };
    active.clear();
    tasks.clear();
  }

  const snapshots = async (values: JsonObject): Promise<Event[]> => {
    const state: Event = { type: EventType.STATE_SNAPSHOT, snapshot: stateOf(values, outputKeys) };
    const kept = messagesIn(values);
    if (kept === undefined) return [state];
    return [state, ...snapshotsOf(await toAgUiMessages(kept, slicer))];
  };

  /** The first state of an attempt is what the client begins with; later ones are changes. */
  const showState = async (values: JsonObject): Promise<Event[]> => {
    const { __interrupt__: waiting, ...rest } = values;
    if (waiting !== undefined && Object.keys(rest).length === 0) return [];
    if (changes === undefined) {
      changes = createStateChanges(slicer);
      await changes.since(stateOf(values, outputKeys));
      return await snapshots(values);
    }
    const delta = await changes.since(stateOf(values, outputKeys));
    return delta.length > 0 ? [{ type: EventType.STATE_DELTA, delta }] : [];
  };

  const showCustom = (value: JsonValue): Event => {
    const name = stringIn(value, "name", "type") ?? "custom";
    return { type: EventType.CUSTOM, name, value };
  };

  const finished = (outcome: RunFinishedOutcome): Event => ({
    type: EventType.RUN_FINISHED,
    threadId,
    runId,
    // Older clients stall on an outcome.
    ...(isOne ? { outcome } : {}),
  });

  return {
    begin: (): Event => ({
      type: EventType.RUN_STARTED,
      threadId,
      runId,
      ...(parentRunId === undefined ? {} : { parentRunId }),
      ...(isOne ? { protocolVersion: PROTOCOL_VERSION } : {}),
    }),

    async translate({ event, data }: CallEvent): Promise<Event[]> {
      switch (event) {
        case "metadata": {
          // Another attempt begins at the last checkpoint.
          const closing = [...closeAll()];
          messages = createOpenMessages();
          changes = undefined;
          ended = new Set();
          isHalfDone = false;
          return closing;
        }
        case "half-done": {
          const { values, ended: ids } = data as { values: JsonValue; ended: string[] };
          ended = new Set(ids);
          isHalfDone = true;
          return isJsonObject(values) ? await showState(values) : [];
        }
        case "values":
          // LangGraph shows the state once more, without what the ended tasks have written.
          return isJsonObject(data) && !isHalfDone ? await showState(data) : [];
        case "messages": {
          const [message, metadata] = Array.isArray(data) ? data : [];
          return isJsonObject(message)
            ? [...messages.add([message, isJsonObject(metadata) ? metadata : {}])]
            : [];
        }
        case "steps": {
          const [id, name] = [stringIn(data, "id"), stringIn(data, "name")];
          isHalfDone = false;
          if (id === undefined || name === undefined || !isJsonObject(data)) return [];
          return [...(data["ended"] === true ? endTask(id) : beginTask(id, name))];
        }
        case "custom":
          return data === null ? [] : [showCustom(data)];
        default:
          return [];
      }
    },

    async finish(outcome: Outcome): Promise<Event[]> {
      const closing = [...closeAll()];
      if (outcome.kind === "failed") {
        const { error: code, message } = outcome.error;
        return [...closing, { type: EventType.RUN_ERROR, message, code }];
      }
      const end = [...closing, ...(await snapshots(outcome.values))];
      if (outcome.kind === "cancelled") return [...end, finished({ type: "cancelled" })];
      if (outcome.kind === "completed") return [...end, finished({ type: "success" })];
      const { interrupts } = outcome;
      const asked = isOne
        ? []
        : interrupts.map(({ value }): Event => {
            const text = typeof value === "string" ? value : JSON.stringify(value);
            return { type: EventType.CUSTOM, name: "on_interrupt", value: text };
          });
      return [...end, ...asked, finished({ type: "interrupt", interrupts: interrupts.map(toAgUiInterrupt) })];
    },
  };
};

export type Translation = ReturnType<typeof createTranslation>;

const pointerTo = (key: string): string => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Follows a graph's state by digests of its keys, so that an open stream holds no state. */
export const createStateChanges = (slicer: TimeSlicer) => {
  let known = new Map<string, string>();

  return {
    /** A JSON Patch of the keys that changed since the last call. */
    async since(state: JsonObject): Promise<JsonPatch> {
      const patch: JsonPatch = [];
      const digests = new Map<string, string>();
      for (const [key, value] of Object.entries(state)) {
        await slicer.next();
        const digest = createHash("sha1").update(JSON.stringify(value)).digest("base64");
        digests.set(key, digest);
        // `add` also replaces a member.
        if (known.get(key) !== digest) patch.push({ op: "add", path: pointerTo(key), value });
      }
      for (const key of known.keys())
        if (!digests.has(key)) patch.push({ op: "remove", path: pointerTo(key) });
      known = digests;
      return patch;
    },
  };
};
