import type { Interrupt } from "@langchain/langgraph";
import { withoutAnswered } from "../../graphs/pending-writes.ts";
import type { GraphRunOptions, RunnableGraph } from "../../graphs/runnable-graph.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { AttemptSaver } from "../../state/checkpoints/types.ts";
import type { RunKwargs } from "../queue/kwargs.ts";

export interface ResumeRefusal {
  reason: "no_such_interrupt";
  interrupt_ids: string[];
  pending_ids: string[];
}

/** A bound, because each read of the run returns the ids. */
const IDS_AT_MOST = 1_000;

/** LangGraph takes a resume whose keys all match this for answers by id (1.4.18, `isXXH3`). */
const INTERRUPT_ID = /^[0-9a-f]{32}$/;

const namedBy = (resume: unknown): string[] => {
  const keys = typeof resume === "object" && resume !== null ? Object.keys(resume) : [];
  return keys.every((key) => INTERRUPT_ID.test(key)) ? keys : [];
};

export class RefusedResumeError extends Error {
  override readonly name = "RefusedResumeError";
  constructor(readonly refusal: ResumeRefusal) {
    super("The run answers an interrupt that is not pending.");
  }
}

/** The ids of the pending interrupts that `resume` answers. */
export const answeredBy = (resume: unknown, interrupts: JsonObject): string[] => {
  const named = new Set(namedBy(resume));
  return (Object.values(interrupts).flat() as { id?: string }[]).flatMap(({ id }) =>
    id !== undefined && (named.size === 0 || named.has(id)) ? [id] : [],
  );
};

/**
 * Of the checkpoint at which the run begins, by task. At an earlier checkpoint a run may answer what was answered
 * before. `saver`: the graph's.
 */
export const interruptsAt = async (
  graph: RunnableGraph,
  { configurable = {} }: GraphRunOptions,
  saver: Pick<AttemptSaver, "filter">,
): Promise<Record<string, Interrupt[]>> => {
  const { filter } = saver;
  if (configurable["checkpoint_id"] === undefined)
    saver.filter = async (tuple, read) =>
      withoutAnswered(filter === undefined ? tuple : await filter(tuple, read));
  try {
    const { tasks } = await graph.getState({ configurable });
    return Object.fromEntries(tasks.map(({ id, interrupts }) => [id, interrupts]));
  } finally {
    saver.filter = filter;
  }
};

/**
 * LangGraph would ignore an answer to an interrupt that is not pending. Checked when the run begins: of two
 * concurrent answers, the second run waits for the first. Throws RefusedResumeError.
 */
export const assertAnswersWhatWaits = async (
  { command, strict_resume: isStrict }: RunKwargs,
  interruptsWaiting: () => Promise<Record<string, Interrupt[]>>,
): Promise<void> => {
  if (isStrict !== true || command?.resume == null) return;
  const interrupts = Object.values(await interruptsWaiting()).flat();
  const pending = new Set(interrupts.flatMap(({ id }) => (id === undefined ? [] : [id])));
  const named = namedBy(command.resume);
  const unknown = named.filter((id) => !pending.has(id));
  if (unknown.length === 0 && pending.size > 0) return;
  throw new RefusedResumeError({
    reason: "no_such_interrupt",
    interrupt_ids: unknown.slice(0, IDS_AT_MOST),
    pending_ids: [...pending].slice(0, IDS_AT_MOST),
  });
};
