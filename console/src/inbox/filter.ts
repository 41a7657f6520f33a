import { HOUR_MS } from "../parts/relative-time.ts";
import { assigneeOf, graphOf, type WaitingThread } from "./waiting-list.ts";

export type Owner = "mine" | "unassigned" | undefined;

export interface InboxFilter {
  owner: Owner;
  graph: string | undefined;
  /** Waiting for at least so long. */
  hours: number | undefined;
}

export const NO_FILTER: InboxFilter = { owner: undefined, graph: undefined, hours: undefined };

const isOwnedBy = (thread: WaitingThread, owner: Owner, me: string): boolean =>
  owner === undefined || assigneeOf(thread) === (owner === "mine" ? me : undefined);

export const isOlder = ({ state_updated_at }: WaitingThread, hours: number): boolean =>
  Date.now() - Date.parse(state_updated_at) >= hours * HOUR_MS;

export const matches = (thread: WaitingThread, { owner, graph, hours }: InboxFilter, me: string): boolean =>
  isOwnedBy(thread, owner, me) &&
  (graph === undefined || graphOf(thread) === graph) &&
  (hours === undefined || isOlder(thread, hours));

/** The part of a filter that the server can apply: metadata cannot say that nobody is assigned. */
export const metadataOf = ({ owner, graph }: InboxFilter, me: string): Record<string, string> => ({
  ...(owner === "mine" && { assignee: me }),
  ...(graph !== undefined && { graph_id: graph }),
});

/** Graphs and how many threads of each wait, the most first. */
export const countsByGraph = (threads: readonly WaitingThread[]): [string, number][] => {
  const counts = new Map<string, number>();
  for (const thread of threads) {
    const graph = graphOf(thread);
    if (graph !== undefined) counts.set(graph, (counts.get(graph) ?? 0) + 1);
  }
  return [...counts].sort(([one, many], [other, more]) => more - many || one.localeCompare(other));
};

const NAMES_AT_MOST = 20;

export const assigneesIn = (threads: readonly WaitingThread[]): string[] =>
  [...new Set(threads.flatMap((thread) => assigneeOf(thread) ?? []))].sort().slice(0, NAMES_AT_MOST);
