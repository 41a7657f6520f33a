import type { RunEvent } from "../../../engine/events/log.ts";
import type { ProtocolParams } from "../../../engine/events/protocol/events.ts";
import { isObject, type JsonObject } from "../../../platform/lib/json.ts";

/** `AgentTreeNode` of `@langchain/protocol`. */
export interface AgentNode extends JsonObject {
  namespace: string[];
  status: string;
  graph_name: string;
  children: AgentNode[];
}

const keyOf = (path: readonly string[]): string => path.join("|");

export const growTree = (root: AgentNode, events: readonly Pick<RunEvent, "data">[]): AgentNode => {
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
