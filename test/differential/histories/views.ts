import type { StateSnapshot } from "@langchain/langgraph";
import { toWireJson } from "../../../src/state/values/wire-json.ts";

/** What a state shows, without ids: these differ between two threads. */
export interface View {
  values: unknown;
  next: unknown;
  tasks: TaskView[];
  interrupts: unknown[];
  source: unknown;
  step: unknown;
}

interface TaskView {
  name: string;
  path: unknown;
  error: unknown;
  interrupts: unknown[];
  result: unknown;
  state: View | null;
}

/** Where a state is. */
export interface Address {
  checkpoint_ns: string;
  checkpoint_id?: string;
  checkpoint_map?: Record<string, string>;
}

export interface Seen {
  view: View;
  id: string | undefined;
  parentId: string | undefined;
  /** Of the subgraphs that have run, from the outside in. */
  subgraphs: Address[];
  /** In the order of the tasks. An id derives from ids of checkpoints, so only the order can be compared. */
  interruptIds: string[];
}

interface Question {
  id?: string;
  value?: unknown;
}

/** A state as the API sends it. */
export interface StateJson {
  values: unknown;
  next: unknown;
  tasks: {
    name: string;
    path: unknown;
    error: unknown;
    interrupts: Question[];
    checkpoint: Address | null;
    state: StateJson | null;
    result: unknown;
  }[];
  metadata: { source?: unknown; step?: unknown } | null;
  interrupts: Question[];
  checkpoint: Address | null;
  parent_checkpoint: Address | null;
}

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
/** Paths and messages name tasks. */
export const withoutIds = (value: unknown): unknown =>
  JSON.parse((JSON.stringify(value) ?? "null").replaceAll(UUID, "*")) as unknown;

const valuesOf = (questions: readonly Question[]): unknown[] => questions.map(({ value }) => value ?? null);

const viewOf = (state: StateJson): View => ({
  values: state.values,
  next: state.next,
  tasks: state.tasks.map((task) => ({
    name: task.name,
    path: withoutIds(task.path),
    error: withoutIds(task.error),
    interrupts: valuesOf(task.interrupts),
    result: task.result,
    state: task.state === null ? null : viewOf(task.state),
  })),
  interrupts: valuesOf(state.interrupts),
  source: state.metadata?.source,
  step: state.metadata?.step,
});

const subgraphsOf = (state: StateJson): Address[] =>
  state.tasks.flatMap((task) => {
    const address = task.state?.checkpoint ?? task.checkpoint;
    const isStored = address?.checkpoint_id !== undefined;
    return [...(isStored ? [address] : []), ...(task.state === null ? [] : subgraphsOf(task.state))];
  });

export const seenOf = (state: StateJson): Seen => ({
  view: viewOf(state),
  id: state.checkpoint?.checkpoint_id,
  parentId: state.parent_checkpoint?.checkpoint_id,
  subgraphs: subgraphsOf(state),
  interruptIds: state.tasks.flatMap((task) => task.interrupts.flatMap(({ id }) => id ?? [])),
});

const messageOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "message" in error ? error.message : (error ?? null);

const isSnapshot = (state: unknown): state is StateSnapshot =>
  typeof state === "object" && state !== null && "values" in state;

/** LangGraph's configuration also names its checkpointer. */
const addressOf = (config: unknown): Address | null => {
  const configurable = (config as { configurable?: Partial<Address> } | undefined)?.configurable;
  if (configurable?.checkpoint_ns === undefined && configurable?.checkpoint_id === undefined) return null;
  const { checkpoint_ns = "", checkpoint_id, checkpoint_map } = configurable;
  return {
    checkpoint_ns,
    ...(checkpoint_id === undefined ? {} : { checkpoint_id }),
    ...(checkpoint_map === undefined ? {} : { checkpoint_map }),
  };
};

const written = (snapshot: StateSnapshot, finished: ReadonlySet<string> = new Set()): unknown => ({
  values: snapshot.values as unknown,
  next: snapshot.next,
  tasks: snapshot.tasks.map((task) => ({
    name: task.name,
    path: task.path ?? [],
    error: messageOf(task.error),
    interrupts: task.interrupts,
    checkpoint: isSnapshot(task.state) ? null : addressOf(task.state),
    state: isSnapshot(task.state) ? written(task.state) : null,
    result: (task as { result?: unknown }).result ?? null,
  })),
  metadata: snapshot.metadata ?? null,
  interrupts: snapshot.tasks.flatMap(({ id, interrupts }) => (finished.has(id) ? [] : interrupts)),
  checkpoint: addressOf(snapshot.config),
  parent_checkpoint: addressOf(snapshot.parentConfig),
});

/** LangGraph's own state in the form of the API. The tasks of `finished` have their answers. */
export const seenSnapshot = (snapshot: StateSnapshot, finished?: ReadonlySet<string>): Seen =>
  seenOf(JSON.parse(toWireJson(written(snapshot, finished))) as StateJson);
