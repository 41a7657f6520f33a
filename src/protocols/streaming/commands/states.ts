import type { EventLog, RunEvent } from "../../../engine/events/log.ts";
import type { ProtocolParams } from "../../../engine/events/protocol/events.ts";
import { isObject, type JsonObject } from "../../../platform/lib/json.ts";
import type { Authorize } from "../../../access/authorize.ts";
import { threadNotFound } from "../../../platform/domain/errors.ts";
import { PROTOCOL_EVENT_PREFIX } from "../../../engine/events/wires.ts";
import { validated } from "../../../http/validation.ts";
import type { ThreadService } from "../../../api/threads/service.ts";
import type { StreamingRepository } from "../repository.ts";
import { listCheckpointsParams, stateParams, treeParams } from "../schemas.ts";
import { CommandError, type CommandSender, type Done } from "./runs.ts";

/** `AgentTreeNode` of `@langchain/protocol`. */
interface AgentNode extends JsonObject {
  namespace: string[];
  status: string;
  graph_name: string;
  children: AgentNode[];
}

const keyOf = (path: readonly string[]): string => path.join("|");

const growTree = (root: AgentNode, events: readonly Pick<RunEvent, "data">[]): AgentNode => {
  const nodes = new Map([["", root]]);
  const around = (path: readonly string[]): AgentNode => {
    for (let length = path.length - 1; length > 0; length -= 1) {
      const node = nodes.get(keyOf(path.slice(0, length)));
      if (node !== undefined) return node;
    }
    return root;
  };
  for (const { data } of events) {
    const { namespace, data: sent } = JSON.parse(data) as ProtocolParams;
    if (namespace.length === 0 || !isObject(sent)) continue;
    const status = sent["event"] === "started" ? "running" : String(sent["event"]);
    const known = nodes.get(keyOf(namespace));
    if (known !== undefined) {
      known.status = status;
      continue;
    }
    const graphName = String(sent["graph_name"] ?? "");
    const node: AgentNode = { namespace: [...namespace], status, graph_name: graphName, children: [] };
    nodes.set(keyOf(namespace), node);
    around(namespace).children.push(node);
  }
  return root;
};

interface StateText {
  values?: unknown;
  checkpoint?: { checkpoint_id?: string; checkpoint_ns?: string } | null;
  created_at?: string | null;
  metadata?: JsonObject & { step?: number };
}

const PARAMS = "The params";
const LIFECYCLE = `${PROTOCOL_EVENT_PREFIX}lifecycle`;
const LIFECYCLE_EVENTS_AT_MOST = 2_000;

const STATUS = { busy: "running", idle: "completed", interrupted: "interrupted", error: "failed" } as const;

const referenceOf = ({ checkpoint }: StateText): JsonObject | undefined =>
  checkpoint?.checkpoint_id === undefined
    ? undefined
    : {
        id: checkpoint.checkpoint_id,
        ...(checkpoint.checkpoint_ns ? { ns: checkpoint.checkpoint_ns } : {}),
      };

export const createStateCommands = (
  authorize: Authorize,
  repository: StreamingRepository,
  eventLog: Pick<EventLog, "named">,
  states: Pick<ThreadService["states"], "read" | "history">,
) => ({
  /** `state.get` */
  async get({ caller, threadId, signal }: CommandSender, params: JsonObject): Promise<Done> {
    const { namespace, keys } = validated(stateParams, params, PARAMS);
    const select = ["checkpoint", ...(keys?.map((key) => `values.${key}`) ?? ["values"])];
    const checkpoint = { checkpoint_ns: namespace };
    const text = await states.read(caller, threadId, { checkpoint, select }, signal);
    const state = JSON.parse(text) as StateText;
    const reference = referenceOf(state);
    if (reference === undefined && namespace !== "") {
      throw new CommandError("no_such_namespace", `No graph of thread '${threadId}' has this namespace.`);
    }
    const values = (state.values ?? {}) as JsonObject;
    return { result: { values, ...(reference === undefined ? {} : { checkpoint: reference }) } };
  },

  /** `state.listCheckpoints` */
  async listCheckpoints({ caller, threadId, signal }: CommandSender, params: JsonObject): Promise<Done> {
    const { namespace, limit, before } = validated(listCheckpointsParams, params, PARAMS);
    const asked = {
      limit,
      ...(before === undefined ? {} : { before }),
      ...(namespace === "" ? {} : { checkpoint: { checkpoint_ns: namespace } }),
      select: ["checkpoint", "created_at", "metadata"],
    };
    const history = states.history(caller, threadId, asked, signal);
    const checkpoints: JsonObject[] = [];
    for await (const text of history) {
      const { checkpoint, created_at: timestamp, metadata = {} } = JSON.parse(text) as StateText;
      checkpoints.push({
        id: checkpoint?.checkpoint_id ?? "",
        timestamp: timestamp ?? null,
        step: metadata.step ?? -1,
        metadata,
      });
    }
    return { result: { checkpoints } };
  },

  /** `agent.getTree`, as far as the run's events are kept. */
  async tree({ caller, threadId }: CommandSender, params: JsonObject): Promise<Done> {
    const { run_id: runId } = validated(treeParams, params, PARAMS);
    const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
    const standing = await repository.standing(visibility, threadId);
    if (standing === undefined) throw threadNotFound(threadId);
    const newest = await repository.newestRun(threadId);
    if (
      runId !== undefined &&
      newest?.runId !== runId &&
      (await repository.ended(threadId, runId)) === undefined
    ) {
      throw new CommandError("no_such_run", `Run '${runId}' not found.`);
    }
    const shown = runId ?? newest?.runId;
    const lifecycle =
      shown === undefined
        ? []
        : await eventLog.named({ threadId, runId: shown }, LIFECYCLE, LIFECYCLE_EVENTS_AT_MOST);
    const root = {
      namespace: [],
      status: STATUS[standing.status],
      graph_name: newest?.graphId ?? "",
      children: [],
    };
    return { result: { tree: growTree(root, lifecycle) } };
  },
});

export type StateCommands = ReturnType<typeof createStateCommands>;
