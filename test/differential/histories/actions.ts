import { AIMessage, RemoveMessage, type BaseMessage } from "@langchain/core/messages";
import { interrupt, REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import type { RunnableConfig } from "@langchain/core/runnables";
import { describeValue, ODD_VALUES } from "./odd-values.ts";

/** Positions are taken modulo the length, so an action suits every state. */
export type Edit =
  | { edit: "append" | "insert" | "remove" | "replace" | "change"; at: number; odd?: string }
  | { edit: "fill"; count: number }
  | { edit: "keep last"; count: number }
  | { edit: "clear" | "reverse" };

/** What a node does. The input of a run says it for each node, so a history is plain JSON. */
export type Action =
  | { act: "messages" | "list"; edits: Edit[] }
  | { act: "value" | "table"; odd: string }
  | { act: "box" | "add" | "log"; number: number }
  | { act: "look" }
  | { act: "ask"; count: number }
  /** In runs with `failing` only, so that a retry succeeds. */
  | { act: "fail" };

export type Plan = Record<string, Action[] | string>;

export interface State {
  plan?: Plan;
  messages?: BaseMessage[];
  list?: unknown[];
  value?: unknown;
  table?: Record<string, unknown>;
  box?: { count: number; inner: { list: unknown[] } };
  sum?: number;
  log?: string[];
}

interface Item {
  number: number;
  deep: { value: unknown; list: unknown[] };
}

const ODD_BY_DEFAULT = "nested";
const oddValue = (odd: string | undefined): unknown => ODD_VALUES[odd ?? ODD_BY_DEFAULT]?.();
const within = (at: number, { length }: readonly unknown[]): number => at % Math.max(length, 1);

const item = (number: number, odd?: string): Item => ({ number, deep: { value: oddValue(odd), list: [] } });

const isItem = (value: unknown): value is Item =>
  typeof value === "object" && value !== null && "deep" in value;

/** The new list shares its unchanged elements with the old one, as that of a careful reducer. */
const editList = (list: readonly unknown[], edit: Edit): unknown[] => {
  switch (edit.edit) {
    case "append":
      return [...list, item(list.length, edit.odd)];
    case "insert":
      return list.toSpliced(within(edit.at, list), 0, item(list.length, edit.odd));
    case "remove":
      return list.toSpliced(within(edit.at, list), 1);
    case "replace":
      return list.map((old, index) => (index === within(edit.at, list) ? item(-1, edit.odd) : old));
    case "change":
      return list.map((old, index) =>
        index === within(edit.at, list) && isItem(old)
          ? { ...old, deep: { ...old.deep, value: oddValue(edit.odd) } }
          : old,
      );
    case "fill":
      return [...list, ...Array.from({ length: edit.count }, (_, index) => item(list.length + index))];
    case "keep last":
      return list.slice(-edit.count);
    case "reverse":
      return list.toReversed();
    case "clear":
      return [];
  }
};

const said = (id: string, odd?: string): AIMessage =>
  new AIMessage({
    id,
    content: `message ${id}`,
    ...(odd === undefined
      ? {}
      : { tool_calls: [{ id: `call ${id}`, name: "tool", args: { value: oddValue(odd) } }] }),
  });

/** The update for a reducer that merges messages by their ids. */
const editMessages = (messages: readonly BaseMessage[], node: string, edit: Edit): BaseMessage[] => {
  const fresh = (index: number): string => `${node}-${messages.length}-${index}`;
  const old = "at" in edit ? messages[within(edit.at, messages)]?.id : undefined;
  switch (edit.edit) {
    case "append":
    case "insert":
      return [said(fresh(0), edit.odd)];
    case "remove":
      return old === undefined ? [] : [new RemoveMessage({ id: old })];
    case "replace":
    case "change":
      return old === undefined ? [] : [said(old, edit.odd)];
    case "fill":
      return Array.from({ length: edit.count }, (_, index) => said(fresh(index)));
    case "keep last":
      return messages.slice(0, -edit.count).map(({ id }) => new RemoveMessage({ id: id ?? "" }));
    case "reverse":
      return messages.map((message) => said(message.id ?? "", "nested"));
    case "clear":
      return [new RemoveMessage({ id: REMOVE_ALL_MESSAGES }), said(fresh(0))];
  }
};

export const isFailing = (config: RunnableConfig | undefined): boolean =>
  config?.configurable?.["failing"] === true;

const ask = (node: string, count: number): string =>
  Array.from({ length: count }, (_, index) => {
    const answer: unknown = interrupt({ node, question: index });
    return `${node} was told ${JSON.stringify(answer)}`;
  }).join("; ");

/**
 * Nodes that run alone, outside of subgraphs. MemorySaver also keeps a change in place that a graph has not taken over, because another node
 * failed, or because the object belongs to the graph around it.
 */
const ALONE = new Set(["a", "d", "e"]);

const changeBox = (node: string, { box }: State, number: number): State["box"] => {
  const changed =
    box === undefined ? { count: 0, inner: { list: [] } } : ALONE.has(node) ? box : structuredClone(box);
  changed.count += number;
  changed.inner.list.push({ number });
  return changed;
};

/** Performs the actions of a node, and returns its update. */
export const perform = (
  node: string,
  state: State,
  config: RunnableConfig | undefined,
): Record<string, unknown> => {
  const update: Record<string, unknown> = {};
  const log: string[] = [];
  const boxed: number[] = [];
  const actions = state.plan?.[node];
  for (const action of Array.isArray(actions) ? actions : []) {
    switch (action.act) {
      case "messages":
        update["messages"] = action.edits.flatMap((edit) => editMessages(state.messages ?? [], node, edit));
        break;
      case "list":
        update["list"] = action.edits.reduce<unknown[]>(editList, state.list ?? []);
        break;
      case "value":
        update["value"] = oddValue(action.odd);
        break;
      case "table":
        update["table"] = { [action.odd]: oddValue(action.odd), node };
        break;
      case "box":
        boxed.push(action.number);
        break;
      case "add":
        update["sum"] = action.number;
        break;
      case "log":
        log.push(`${node} ${action.number}`);
        break;
      case "look":
        log.push(`${node} saw ${describeValue([state.value, state.table, state.sum])}`);
        break;
      case "ask":
        log.push(ask(node, action.count));
        break;
      case "fail":
        if (isFailing(config)) throw new Error(`${node} fails`);
        log.push(`${node} has not failed`);
    }
  }
  // Last, when the node can neither stop nor fail any more.
  for (const number of boxed) update["box"] = changeBox(node, state, number);
  return log.length === 0 ? update : { ...update, log };
};
