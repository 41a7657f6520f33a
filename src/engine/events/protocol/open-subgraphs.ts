import { isObject } from "../../../platform/lib/json.ts";
import type { RunSelector } from "../../queue/attempts.ts";
import type { EventLog } from "../log.ts";
import { PROTOCOL_EVENT_PREFIX } from "../wires.ts";
import type { ProtocolParams } from "./events.ts";

const LIFECYCLE = `${PROTOCOL_EVENT_PREFIX}lifecycle`;
/** Most runs have a few. With more, some could be ended twice. */
const EVENTS_AT_MOST = 2_000;

export interface OpenSubgraph {
  path: readonly string[];
  name: string;
}

/**
 * Subgraphs that earlier attempts began and, by the log, did not end. If a server died between a step's checkpoint and
 * the ends of the step's subgraphs, no attempt repeats them.
 */
export const openSubgraphs = async (
  log: Pick<EventLog, "named">,
  run: RunSelector,
): Promise<OpenSubgraph[]> => {
  const events = await log.named(run, LIFECYCLE, EVENTS_AT_MOST);
  if (events.length === EVENTS_AT_MOST) return [];
  const open = new Map<string, OpenSubgraph>();
  for (const { data } of events) {
    const { namespace, data: sent } = JSON.parse(data) as ProtocolParams;
    const { event, graph_name: name } = isObject(sent) ? sent : {};
    const key = namespace.join("|");
    if (event === "started") open.set(key, { path: namespace, name: String(name) });
    else open.delete(key);
  }
  return [...open.values()];
};
