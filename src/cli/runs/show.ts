import type { z } from "zod";
import type { runExtract } from "../../api/runs/schemas.ts";
import { trace as traceAnswer, type Trace } from "../../api/runs/traces/schemas.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { isJsonObject } from "../../platform/lib/json.ts";
import { fieldsText } from "../printable.ts";
import { durationText } from "../remote/duration.ts";
import type { RemoteServer } from "../remote/server.ts";
import { endingAt, slowestNode } from "./spans.ts";
import { attemptMs, timelineText } from "./timeline.ts";

export type Run = z.output<typeof runExtract>;
type Field = readonly [name: string, value: string];

const count = new Intl.NumberFormat("en-US");

/** How long a run was or is executed. */
export const took = ({ run_started_at: started, run_ended_at: ended }: Run): string =>
  started == null ? "-" : durationText(Date.parse(ended ?? new Date().toISOString()) - Date.parse(started));

const failedNodesOf = async (
  server: RemoteServer,
  { thread_id: threadId, run_id: runId }: Run,
): Promise<string[]> => {
  const path = `/threads/${threadId}/history`;
  const answer = await server.post(path, { limit: 1, metadata: { run_id: runId ?? "" }, select: ["tasks"] });
  const [newest] = Array.isArray(answer) ? answer : [];
  const tasks =
    isJsonObject(newest) && Array.isArray(newest["tasks"]) ? newest["tasks"].filter(isJsonObject) : [];
  return tasks
    .filter(({ error }) => typeof error === "string")
    .map(({ name, error }) => `${String(name)}: ${String(error)}`);
};

/** Throws StartError, also for an answer of another form. */
export const readTrace = async (
  server: Pick<RemoteServer, "get">,
  { thread_id: threadId, run_id: runId }: Run,
): Promise<Trace> => {
  const { data } = traceAnswer.safeParse(await server.get(`/threads/${threadId}/runs/${runId}/trace`));
  if (data === undefined) throw new StartError("The server's traces have another form. Its version differs.");
  return data;
};

const attemptsText = ({ attempts = 0, lost_attempts: lost = 0 }: Run): string => {
  const handedBack = Math.max(0, attempts - lost - 1);
  const ends = [
    ...(lost > 0 ? [`${lost} lost with a server or graph process`] : []),
    ...(handedBack > 0 ? [`${handedBack} handed back by a server that stopped`] : []),
  ];
  return ends.length === 0 ? String(attempts) : `${attempts} (${ends.join(", ")})`;
};

/** The wait begins when the run is due. */
const waitFields = ({ created_at: created, available_at: due = created, run_started_at: start }: Run) => {
  if (created === undefined || due === undefined) return [["Waited", "-"] as const];
  const [createdMs, dueMs] = [Date.parse(created), Date.parse(due)];
  const waitedMs = start == null ? undefined : Date.parse(start) - Math.max(createdMs, dueMs);
  const waited = waitedMs === undefined ? "-" : durationText(Math.max(0, waitedMs));
  return [...(dueMs > createdMs ? [["Due", due] as const] : []), ["Waited", waited] as const];
};

const errorFields = ({ error }: Run): Field[] =>
  Object.entries(error ?? {}).map(([field, value]) => [
    field === "error" ? "Error" : `  ${field}`,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);

const usageFields = ({ usage }: Trace): Field[] => {
  const models = usage.map((used, at): Field => {
    const cached = used.cache_read_tokens === 0 ? "" : ` (${count.format(used.cache_read_tokens)} cached)`;
    const calls = used.calls === 1 ? "1 call" : `${count.format(used.calls)} calls`;
    const tokens = `${count.format(used.input_tokens)} in${cached}, ${count.format(used.output_tokens)} out`;
    return [at === 0 ? "Tokens" : "", `${used.model}: ${tokens}, ${calls}`];
  });
  const priced = usage.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  if (priced.length === 0) return models;
  const sum = Number(priced.reduce((all, cost) => all + cost, 0).toPrecision(6));
  const part = priced.length < usage.length ? " (some models have no price)" : "";
  return [...models, ["Cost", `${sum}${part}`]];
};

const slowestFields = (trace: Trace): Field[] => {
  const attempt = trace.attempts.findLast(({ spans }) => spans.length > 0);
  if (attempt === undefined) return [];
  const slowest = slowestNode(attempt.spans, endingAt(attemptMs(trace, attempt)));
  if (slowest === undefined) return [];
  const times = slowest.times === 1 ? "" : ` in ${count.format(slowest.times)} executions`;
  return [["Slowest node", `${slowest.name}, ${durationText(slowest.milliseconds)}${times}`]];
};

const traceFields = (trace: Trace): Field[] => [
  ...(trace.answered_after_ms === null
    ? []
    : [["Answered after", durationText(trace.answered_after_ms)] as const]),
  ...usageFields(trace),
  ...slowestFields(trace),
];

const runText = (run: Run, failedNodes: readonly string[], trace: Trace | undefined): string =>
  fieldsText([
    ["Run", run.run_id ?? ""],
    ["Thread", run.thread_id ?? ""],
    ["Assistant", run.assistant_id ?? ""],
    ["Graph", run.graph_id ?? "-"],
    ["Status", run.status ?? ""],
    ["Attempts", run.attempts === undefined ? "-" : attemptsText(run)],
    ["Created", run.created_at ?? ""],
    ...waitFields(run),
    ["Took", took(run)],
    ["Ended", run.run_ended_at ?? "-"],
    ...errorFields(run),
    ...failedNodes.map((node) => ["Failed in", node] as const),
    ...(trace === undefined ? [] : traceFields(trace)),
    ["Metadata", JSON.stringify(run.metadata ?? {})],
  ]);

const isEmpty = ({ attempts }: Trace): boolean =>
  attempts.every(({ spans, dropped_spans: dropped }) => spans.length === 0 && dropped === 0);

const whyEmpty = ({ status }: Trace): string => {
  if (status === "pending") return "The run waits, so it has no trace yet.";
  if (status === "running")
    return "The run has no trace yet. A server stores traces every two seconds, and with TRACES=errors or off not before the end.";
  return "The run has no trace: TRACES is off, or errors and the run did not fail, or the trace was older than TRACE_RETENTION_SECONDS.";
};

interface Output {
  write(text: string): void;
  note(text: string): void;
  readonly columns?: number | undefined;
}

/** Writes the facts of a run and the timeline of its trace. A run without a trace is shown with the reason. */
export const showRun = async (
  server: RemoteServer,
  run: Run,
  isJson: boolean,
  { write, note, columns }: Output,
): Promise<void> => {
  let unreadable: string | undefined;
  const [failedNodes, trace] = await Promise.all([
    run.status === "error" ? failedNodesOf(server, run) : [],
    readTrace(server, run).catch((error: unknown) => {
      if (!(error instanceof StartError)) throw error;
      unreadable = `The run's trace can't be read: ${error.message}`;
      return undefined;
    }),
  ]);
  if (isJson) return write(`${JSON.stringify({ ...run, failed_in: failedNodes, trace: trace ?? null })}\n`);
  write(runText(run, failedNodes, trace));
  if (trace === undefined) return note(`${unreadable}\n`);
  if (isEmpty(trace)) return note(`${whyEmpty(trace)}\n`);
  write(`\n${timelineText(trace, columns)}`);
};
