import type { Message, RunAgentInput } from "@ag-ui/core";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Outcome } from "../calls/outcome.ts";
import type { Call } from "../calls/start.ts";
import type { FoundRun, ThreadRuns } from "./repository.ts";
import { changedState, commandBody, commandOf, resumeBody, startBody, type Keys } from "./run-body.ts";

/** The server's action for a request. */
export type Plan =
  | { kind: "join"; run: FoundRun }
  /** Nothing to do: the client gets the thread's state, or an error. */
  | { kind: "show"; outcome: Outcome }
  | { kind: "start"; body: Call["body"]; turnsSeen: number };

export interface PlanInput {
  input: RunAgentInput;
  runs: ThreadRuns | undefined;
  values: JsonObject;
  keys: Keys;
}

const NEVER_RAN = {
  turns: 0,
  interrupts: [],
  same: null,
  answering: null,
  running: null,
  pending: null,
  newest: null,
};

export const sortedIds = (ids: readonly string[]): string[] => [...new Set(ids)].sort();

const idsIn = ({ messages }: JsonObject): Set<unknown> =>
  new Set(Array.isArray(messages) ? messages.map((message) => (message as { id?: unknown } | null)?.id) : []);

/** Messages that the thread does not have. While a run is in progress, the thread may lack some of those it was given. */
const newMessages = ({ messages }: RunAgentInput, values: JsonObject, runs: ThreadRuns): Message[] => {
  const { running, pending, newest } = runs;
  const last = messages.at(-1)?.id;
  // A run that failed may have lost its input.
  const took = [running, pending, newest?.status === "success" ? newest : null];
  if (last === undefined || took.some((run) => run?.lastMessage === last)) return [];
  const lastGiven = messages.findLastIndex(({ id }) =>
    [running, pending].some((run) => run?.lastMessage === id),
  );
  const known = idsIn(values);
  return messages.slice(lastGiven + 1).filter(({ id }) => !known.has(id));
};

/** An assistant's message alone is what the client kept of a stream, or a greeting. */
const asksForRun = ({ role }: Message): boolean =>
  role !== "assistant" && role !== "reasoning" && role !== "activity";

/** A client repeats a turn that failed. A page that was reloaded has no messages. */
const repeatsFailure = ({ messages }: RunAgentInput, { newest }: ThreadRuns): boolean =>
  messages.length > 0 && (newest?.status === "error" || newest?.status === "timeout");

const refusal = (message: string): Plan => ({
  kind: "show",
  outcome: { kind: "failed", error: { error: "invalid_resume", message } },
});

const planAnswer = (
  { input, runs = NEVER_RAN }: PlanInput,
  resume: NonNullable<RunAgentInput["resume"]>,
): Plan => {
  const answers = sortedIds(resume.map(({ interruptId }) => interruptId));
  if (answers.length !== resume.length) return refusal("'resume' answers an interrupt twice.");
  const waiting = new Set(runs.interrupts.map(({ id }) => id));
  const unknown = answers.find((id) => !waiting.has(id));
  if (unknown !== undefined) {
    if (runs.answering !== null) return { kind: "join", run: runs.answering };
    return refusal(`'resume': interrupt '${unknown}' does not wait for an answer.`);
  }
  const answered = new Set(answers);
  const missing = [...waiting].find((id) => !answered.has(id));
  if (missing !== undefined)
    return refusal(`'resume' must answer all interrupts that wait: '${missing}' is missing.`);
  return { kind: "start", body: resumeBody(input, resume, answers), turnsSeen: runs.turns };
};

/** The older dialect: one answer, without the id of an interrupt. */
const planCommand = ({ input, runs = NEVER_RAN }: PlanInput, command: JsonObject): Plan => {
  if (runs.interrupts.length > 0)
    return { kind: "start", body: commandBody(input, command), turnsSeen: runs.turns };
  const unfinished = runs.running ?? runs.pending;
  if (unfinished !== null) return { kind: "join", run: unfinished };
  return refusal("'forwardedProps.command.resume': no interrupt of the thread waits for an answer.");
};

const planTurn = (planInput: PlanInput): Plan => {
  const { input, runs = NEVER_RAN, values, keys } = planInput;
  const messages = newMessages(input, values, runs);
  const isAsked = messages.some(asksForRun);
  const unfinished = runs.running ?? runs.pending;
  if (unfinished !== null && !isAsked) return { kind: "join", run: unfinished };
  const { interrupts } = runs;
  if (interrupts.length > 0) return { kind: "show", outcome: { kind: "interrupted", values, interrupts } };
  const show: Plan = { kind: "show", outcome: { kind: "completed", values } };
  const state = changedState(input, values, keys);
  const start = (): Plan => ({
    kind: "start",
    body: startBody(input, { messages, state, keys }),
    turnsSeen: runs.turns,
  });
  if (isAsked || repeatsFailure(input, runs)) return start();
  // A page that keeps no messages starts a run by its state.
  if (input.messages.length > 0) return show;
  const hasState = Object.keys(state).length > 0;
  return hasState || (runs.newest === null && !keys.has("messages")) ? start() : show;
};

export const planOf = (planInput: PlanInput): Plan => {
  const { input, runs } = planInput;
  if (runs?.same != null) return { kind: "join", run: runs.same };
  if (input.resume !== undefined && input.resume.length > 0) return planAnswer(planInput, input.resume);
  const command = commandOf(input);
  return command === undefined ? planTurn(planInput) : planCommand(planInput, command);
};
