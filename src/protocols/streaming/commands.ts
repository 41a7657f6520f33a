import type { RunService } from "../../api/runs/service.ts";
import { runBody, type RunBody } from "../../api/runs/schemas.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { beforeTurn } from "../../engine/events/event-ids.ts";
import type { EventLog, RunEvent } from "../../engine/events/log.ts";
import type { ProtocolParams } from "../../engine/events/protocol/events.ts";
import { PROTOCOL_EVENT_PREFIX } from "../../engine/events/wires.ts";
import { refusalOf as refusalOverHttp } from "../../http/errors.ts";
import { validated } from "../../http/validation.ts";
import { isPassing } from "../../platform/database/passing-faults.ts";
import {
  CallerGoneError,
  HandlerRefusal,
  ThreadloomError,
  threadNotFound,
  type Missing,
} from "../../platform/domain/errors.ts";
import { isObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import type { Interrupt } from "./reading/ends.ts";
import type { NewestRun, StreamingRepository, ThreadStanding } from "./repository.ts";
import {
  forkParams,
  listCheckpointsParams,
  respondParams,
  respondUpdate,
  stateParams,
  treeParams,
  type CommandAnswer,
  type CommandEnvelope,
  type ErrorCode,
} from "./schemas.ts";

export interface CommandSender {
  caller: Caller;
  threadId: string;
  /** Headers for the configuration of runs. */
  headers: Readonly<Record<string, string>> | undefined;
  /** Receives faults of the server, whose details the answer hides. */
  onFault: (error: unknown) => void;
  /** Aborts with a `CallerGoneError` when the sender has left. */
  signal: AbortSignal;
}

const CREATING_RUNS = new Set(["run.start", "input.respond", "state.fork"]);
export const createsRun = ({ method }: CommandEnvelope): boolean => CREATING_RUNS.has(method);

/** Over HTTP, the answer has status 200. */
export class CommandError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
    this.name = "CommandError";
  }
}

const MISSING: Record<Missing, ErrorCode> = {
  assistant: "invalid_argument",
  graph: "invalid_argument",
  thread: "no_such_run",
  run: "no_such_run",
  checkpoint: "no_such_checkpoint",
};

const codeOf = (error: unknown, status: number): ErrorCode => {
  if (error instanceof HandlerRefusal || status === 401 || status === 403) return "permission_denied";
  if (status === 429 || status === 503) return "unknown_error";
  const missing = error instanceof ThreadloomError ? error.missing : undefined;
  return missing === undefined ? "invalid_argument" : MISSING[missing];
};

/** Errors with an HTTP status, so that clients can repeat the request or authenticate. */
export const isForHttp = (error: unknown): boolean =>
  error instanceof HandlerRefusal ||
  isPassing(error) ||
  (error instanceof ThreadloomError &&
    (["unauthenticated", "forbidden", "unavailable", "too_large", "too_many"].includes(error.kind) ||
      error.missing === "assistant" ||
      error.missing === "graph"));

export const refusalOf = (id: number, error: unknown, onFault: (error: unknown) => void): CommandAnswer => {
  if (error instanceof CommandError) return { type: "error", id, error: error.code, message: error.message };
  // The database module logs its own outage, and an unstorable value is the caller's fault.
  const refusal = refusalOverHttp(error);
  if (refusal !== undefined)
    return { type: "error", id, error: codeOf(error, refusal.status), message: refusal.detail };
  onFault(error);
  const message = "The server could not do this; its log says why.";
  return { type: "error", id, error: "unknown_error", message };
};

/** `appliedThroughSeq`: the last event id of the thread before the command's first event. */
interface Done {
  result: JsonObject;
  appliedThroughSeq?: number;
}

type Command = (sender: CommandSender, params: JsonObject) => Promise<Done>;

const PARAMS = "The params";
/** Tries after another run was created on the thread. */
const TRIES_AT_MOST = 10;

const interruptsOf = ({ interrupts }: ThreadStanding): Interrupt[] =>
  Object.values(interrupts).flat() as Interrupt[];

const isConflict = (error: unknown): boolean => error instanceof ThreadloomError && error.kind === "conflict";

const namesCheckpoint = ({ config, checkpoint, checkpoint_id }: RunBody): boolean =>
  checkpoint !== undefined ||
  checkpoint_id !== undefined ||
  (config?.configurable as JsonObject | undefined)?.checkpoint_id !== undefined;

/** JavaScript's RemoteGraph sends a `Command` as the input. */
const commandIn = (input: JsonValue | undefined): JsonObject | undefined => {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined;
  const { lg_name: className, ...command } = input;
  return className === "Command" ? command : undefined;
};

/** The JavaScript SDK sends both spellings. */
const startBody = (params: JsonObject): RunBody => {
  const { multitaskStrategy, multitask_strategy = multitaskStrategy, ...rest } = params;
  const command = commandIn(rest["input"]);
  const asked = command === undefined ? rest : { ...rest, input: null, command };
  const body = { ...asked, multitask_strategy, if_not_exists: "create", stream_mode: ["values"] };
  return validated(runBody, body, PARAMS);
};

/** `AgentTreeNode` of `@langchain/protocol`. */
interface AgentNode extends JsonObject {
  namespace: string[];
  status: string;
  graph_name: string;
  children: AgentNode[];
}

const LIFECYCLE = `${PROTOCOL_EVENT_PREFIX}lifecycle`;
const LIFECYCLE_EVENTS_AT_MOST = 2_000;
const STATUS = { busy: "running", idle: "completed", interrupted: "interrupted", error: "failed" } as const;

const growTree = (root: AgentNode, events: readonly Pick<RunEvent, "data">[]): AgentNode => {
  const nodes = new Map([["", root]]);
  const at = (path: readonly string[]): AgentNode | undefined => nodes.get(path.join("|"));
  const around = (path: readonly string[]): AgentNode => at(path) ?? around(path.slice(0, -1));
  for (const { data } of events) {
    const { namespace, data: sent } = JSON.parse(data) as ProtocolParams;
    if (namespace.length === 0 || !isObject(sent)) continue;
    const status = sent["event"] === "started" ? "running" : String(sent["event"]);
    const known = at(namespace);
    if (known !== undefined) {
      known.status = status;
      continue;
    }
    const graphName = String(sent["graph_name"] ?? "");
    const node: AgentNode = { namespace: [...namespace], status, graph_name: graphName, children: [] };
    around(namespace).children.push(node);
    nodes.set(namespace.join("|"), node);
  }
  return root;
};

interface StateText {
  values?: JsonObject;
  checkpoint?: { checkpoint_id?: string; checkpoint_ns?: string } | null;
  created_at?: string | null;
  metadata?: JsonObject & { step?: number };
}

const notSupported =
  (why: string): Command =>
  async () => {
    throw new CommandError("not_supported", why);
  };

export interface CommandParts {
  authorize: Authorize;
  repository: StreamingRepository;
  creation: RunService["creation"];
  states: Pick<ThreadService["states"], "read" | "history">;
  eventLog: Pick<EventLog, "named">;
}

export const createCommandService = (parts: CommandParts) => {
  const { authorize, repository, creation, states, eventLog } = parts;

  const standingOf = async ({ caller, threadId }: CommandSender): Promise<ThreadStanding | undefined> =>
    await repository.standing(await authorize(caller, "threads", "read", { thread_id: threadId }), threadId);

  const create = async (
    { caller, threadId, headers }: CommandSender,
    body: RunBody,
    standing: ThreadStanding | undefined,
    turnsSeen?: number,
  ): Promise<Done> => {
    const how = { eventStreaming: true, turnsSeen, headers };
    const { row } = await creation.createOnThread(caller, threadId, body, how);
    const before = row.turn > 0 ? row.turn - 1 : (standing?.begun ?? 0);
    return { result: { run_id: row.run_id }, appliedThroughSeq: before === 0 ? 0 : beforeTurn(before + 1) };
  };

  const knownThread = async (
    sender: CommandSender,
  ): Promise<{ standing: ThreadStanding; newest: NewestRun }> => {
    const standing = await standingOf(sender);
    const newest = standing && (await repository.newestRun(sender.threadId));
    if (standing === undefined || newest === undefined)
      throw new CommandError("no_such_run", `Thread '${sender.threadId}' has no run.`);
    return { standing, newest };
  };

  /** On an interrupted thread the input is the answer, unless the body names a checkpoint. */
  const start: Command = async (sender, params) => {
    const body = startBody(params);
    const mayAnswer = body.input != null && body.command === undefined && !namesCheckpoint(body);
    for (let tries = 1; ; tries += 1) {
      const standing = await standingOf(sender);
      const isAnswer = mayAnswer && standing?.status === "interrupted" && interruptsOf(standing).length > 0;
      const asked = isAnswer ? ({ ...body, command: { resume: body.input } } as RunBody) : body;
      try {
        return await create(sender, asked, standing, isAnswer ? standing.turns : undefined);
      } catch (error) {
        // Another caller has answered, so this input starts an ordinary run.
        if (!isAnswer || !isConflict(error) || tries === TRIES_AT_MOST) throw error;
      }
    }
  };

  /**
   * Continues with the interrupted run's assistant. The second answer is refused, even after the end of the first one's
   * run. With `strict_resume`, an answer without an interrupt becomes a failing run: SDK 1.15 reads the refusal from the
   * run's end.
   */
  const respond: Command = async (sender, params) => {
    const { responses } = validated(respondParams, params, PARAMS);
    const more = validated(respondUpdate, params, PARAMS);
    const { standing, newest } = await knownThread(sender);
    const isStrict = params["strict_resume"] === true;
    const waiting = new Set(interruptsOf(standing).map(({ id }) => id));
    const unknown = responses.find(({ interrupt_id: id }) => !waiting.has(id));
    if (!isStrict && (standing.status !== "interrupted" || unknown !== undefined)) {
      const id = (unknown ?? responses[0])?.interrupt_id;
      throw new CommandError("no_such_interrupt", `Interrupt '${id}' does not wait for an answer.`);
    }
    const resume = Object.fromEntries(
      responses.map(({ interrupt_id: id, response }) => [id, response ?? null]),
    );
    const { config, context, metadata, interrupt_before, interrupt_after } = params;
    const body = {
      ...{ assistant_id: newest.assistantId, config, context, metadata, stream_mode: ["values"] },
      ...{ interrupt_before, interrupt_after },
      ...{ command: { ...more, resume }, strict_resume: isStrict },
      multitask_strategy: isStrict ? "enqueue" : "reject",
    };
    const turnsSeen = isStrict ? undefined : standing.turns;
    try {
      return await create(sender, validated(runBody, body, PARAMS), standing, turnsSeen);
    } catch (error) {
      if (!isConflict(error)) throw error;
      throw new CommandError(
        "no_such_interrupt",
        "Another run has begun on the thread: the interrupt was answered, or another one is.",
      );
    }
  };

  const fork: Command = async (sender, params) => {
    const { checkpoint_id, input, config } = validated(forkParams, params, PARAMS);
    const { standing, newest } = await knownThread(sender);
    const assistant_id = newest.assistantId;
    const body = { assistant_id, input, config, checkpoint_id, stream_mode: ["values"] };
    const { result, ...done } = await create(sender, validated(runBody, body, PARAMS), standing);
    return { result: { ...result, thread_id: sender.threadId }, ...done };
  };

  const getState: Command = async ({ caller, threadId, signal }, params) => {
    const { namespace, keys } = validated(stateParams, params, PARAMS);
    const select = ["checkpoint", ...(keys?.map((key) => `values.${key}`) ?? ["values"])];
    const options = { checkpoint: { checkpoint_ns: namespace }, select };
    const text = await states.read(caller, threadId, options, signal);
    const { values = {}, checkpoint } = JSON.parse(text) as StateText;
    const { checkpoint_id: id, checkpoint_ns: ns } = checkpoint ?? {};
    if (id === undefined && namespace !== "")
      throw new CommandError("no_such_namespace", `No graph of thread '${threadId}' has this namespace.`);
    return { result: { values, ...(id === undefined ? {} : { checkpoint: { id, ...(ns ? { ns } : {}) } }) } };
  };

  const listCheckpoints: Command = async ({ caller, threadId, signal }, params) => {
    const { namespace, limit, before } = validated(listCheckpointsParams, params, PARAMS);
    const asked = {
      limit,
      ...(before === undefined ? {} : { before }),
      ...(namespace === "" ? {} : { checkpoint: { checkpoint_ns: namespace } }),
      select: ["checkpoint", "created_at", "metadata"],
    };
    const checkpoints: JsonObject[] = [];
    for await (const text of states.history(caller, threadId, asked, signal)) {
      const { checkpoint, created_at: timestamp = null, metadata = {} } = JSON.parse(text) as StateText;
      checkpoints.push({
        ...{ id: checkpoint?.checkpoint_id ?? "", timestamp, step: metadata.step ?? -1, metadata },
      });
    }
    return { result: { checkpoints } };
  };

  /** As far as the run's events are kept. */
  const getTree: Command = async (sender, params) => {
    const { threadId } = sender;
    const { run_id: runId } = validated(treeParams, params, PARAMS);
    const standing = await standingOf(sender);
    if (standing === undefined) throw threadNotFound(threadId);
    const newest = await repository.newestRun(threadId);
    const shown = runId ?? newest?.runId;
    if (shown !== newest?.runId && (await repository.ended(threadId, shown!)) === undefined)
      throw new CommandError("no_such_run", `Run '${shown}' not found.`);
    const lifecycle =
      shown === undefined
        ? []
        : await eventLog.named({ threadId, runId: shown }, LIFECYCLE, LIFECYCLE_EVENTS_AT_MOST);
    const graphName = newest?.graphId ?? "";
    const root = { namespace: [], status: STATUS[standing.status], graph_name: graphName, children: [] };
    return { result: { tree: growTree(root, lifecycle) } };
  };

  const ofSocket = notSupported("Subscriptions are for WebSockets: POST /threads/{thread_id}/stream/events.");
  const commands = new Map<string, Command>([
    ["run.start", start],
    ["input.respond", respond],
    ["input.inject", notSupported("Nothing can be put into a run that goes on: start another one.")],
    ["agent.getTree", getTree],
    ["state.get", getState],
    ["state.listCheckpoints", listCheckpoints],
    ["state.fork", fork],
    ["subscription.subscribe", ofSocket],
    ["subscription.unsubscribe", ofSocket],
    ["subscription.reconnect", ofSocket],
  ]);

  /** Throws the errors that `rethrows` accepts. */
  return async (
    sender: CommandSender,
    { id, method, params }: CommandEnvelope,
    rethrows: (error: unknown) => boolean = () => false,
  ): Promise<CommandAnswer> => {
    try {
      const command = commands.get(method);
      if (command === undefined)
        throw new CommandError("unknown_command", `There is no command '${method}'.`);
      const { result, appliedThroughSeq: seq } = await command(sender, params);
      const meta = { thread_id: sender.threadId, ...(seq === undefined ? {} : { applied_through_seq: seq }) };
      return { type: "success", id, result, meta };
    } catch (error) {
      if (error instanceof CallerGoneError || rethrows(error)) throw error;
      return refusalOf(id, error, sender.onFault);
    }
  };
};
