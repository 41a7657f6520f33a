import { Command, Option } from "commander";
import { z } from "zod";
import { StartError } from "../../platform/domain/errors.ts";
import { runExtract } from "../../api/runs/schemas.ts";
import { trace as traceAnswer, type Trace } from "../../api/runs/traces/schemas.ts";
import { fieldsText, printable } from "../printable.ts";
import { durationText, jsonLine } from "../flags.ts";
import {
  forEachId,
  idArgument,
  idsArgument,
  listing,
  onServer,
  readListed,
  tail,
  writeListed,
  type ListFlags,
} from "../remote/listing.ts";
import { RemoteServer, type ServerFlags } from "../remote/server.ts";
import type { CreateCommand } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom runs list --status error --since 24h
  $ threadloom runs show 0199f3a0-0000-7000-8000-000000000000
  $ threadloom runs tail 0199f3a0-0000-7000-8000-000000000000
  $ threadloom runs cancel 0199f3a0-0000-7000-8000-000000000000

These commands call a running server's API: --url and --api-key, or THREADLOOM_URL and THREADLOOM_API_KEY.
'show --json' has the whole trace in 'trace'; the console draws it.
Exit codes: 0 done, 1 not done, or the run that was followed failed, 2 wrong usage.`;

const STATUSES = ["pending", "running", "error", "success", "timeout", "interrupted"];
const runs = z.array(runExtract);
type Run = z.output<typeof runExtract>;
type Field = readonly [name: string, value: string];

const count = new Intl.NumberFormat("en-US");

/** How long a run was or is executed. */
const took = ({ run_started_at: started, run_ended_at: ended }: Run): string =>
  started == null ? "-" : durationText(Date.parse(ended ?? new Date().toISOString()) - Date.parse(started));

/** Undefined if this caller may not read the trace, or if the server is of another version. */
const readTrace = async (
  server: RemoteServer,
  { thread_id: threadId, run_id: runId }: Run,
): Promise<Trace | undefined> => {
  const answer = await server.get(`/threads/${threadId}/runs/${runId}/trace`).catch((error: unknown) => {
    if (!(error instanceof StartError)) throw error;
  });
  return traceAnswer.safeParse(answer).data;
};

const failedNodesIn = (trace: Trace | undefined): string[] =>
  (trace?.attempts.at(-1)?.spans ?? []).flatMap(({ kind, status, name, error }) =>
    kind === "node" && status === "error" ? [`${name}: ${error?.message ?? ""}`] : [],
  );

/** The wait begins when the run is due. */
const waitFields = ({ created_at: created, available_at: due = created, run_started_at: start }: Run) => {
  const [createdMs, dueMs] = [Date.parse(created ?? ""), Date.parse(due ?? "")];
  const waitedMs = Math.max(0, Date.parse(start ?? "") - Math.max(createdMs, dueMs));
  return [
    ...(dueMs > createdMs ? [["Due", due ?? ""] as const] : []),
    ["Waited", Number.isNaN(waitedMs) ? "-" : durationText(waitedMs)] as const,
  ];
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

const runText = (run: Run, trace: Trace | undefined): string =>
  fieldsText([
    ["Run", run.run_id ?? ""],
    ["Thread", run.thread_id ?? ""],
    ["Assistant", run.assistant_id ?? ""],
    ["Graph", run.graph_id ?? "-"],
    ["Status", run.status ?? ""],
    [
      "Attempts",
      `${run.attempts ?? "-"}${run.lost_attempts ? ` (${run.lost_attempts} lost with a process)` : ""}`,
    ],
    ["Created", run.created_at ?? ""],
    ...waitFields(run),
    ["Took", took(run)],
    ["Ended", run.run_ended_at ?? "-"],
    ...errorFields(run),
    ...failedNodesIn(trace).map((node) => ["Failed in", node] as const),
    ...(trace === undefined ? [] : usageFields(trace)),
    ["Metadata", JSON.stringify(run.metadata ?? {})],
  ]);

/** No other route finds a run without its thread's id. */
const findRun = async (server: RemoteServer, id: string): Promise<Run> => {
  const [run] = runs.parse(await server.post("/runs/search", { run_id: id }));
  if (run === undefined) throw new StartError(`There is no run '${id}', or this API key can't see it.`);
  return run;
};

const UNFINISHED = ["pending", "running"];
const FAILED = ["error", "timeout"];

/** Undefined if the run goes on or is invisible, or if the server can't search runs. */
const endOf = async (server: RemoteServer, id: string): Promise<Run | undefined> => {
  const run = await findRun(server, id).catch((error: unknown) => {
    if (!(error instanceof StartError)) throw error;
  });
  return run === undefined || UNFINISHED.includes(run.status ?? "") ? undefined : run;
};

const endText = ({ status, error }: Run, id: string): string => {
  const why = error == null ? "" : ` (${printable(`${error.error}: ${error.message}`)})`;
  return `Run '${id}' has ended: ${status ?? ""}${why}.`;
};

const cancel = async (server: RemoteServer, id: string, action: string): Promise<void> => {
  try {
    await server.post(`/runs/cancel?action=${action}`, { run_ids: [id] });
  } catch (error) {
    const ended = error instanceof StartError ? await endOf(server, id) : undefined;
    throw ended === undefined ? error : new StartError(endText(ended, id), { cause: error });
  }
};

export const create: CreateCommand = (surroundings) => {
  const { write, note, environment } = surroundings;
  const command = new Command("runs").description(
    "Lists, shows, follows and cancels runs of a running server.",
  );
  command.addHelpText("after", EXAMPLES);

  listing(command.command("list"), { statuses: STATUSES, happened: "were made" })
    .description("Lists runs of all threads, newest first.")
    .option("--thread <id>", "only those of this thread", idArgument)
    .action(async (options: ListFlags & { thread?: string }) => {
      const { status, graph, assistant, thread, since, limit } = options;
      const found = await readListed(new RemoteServer(options, environment), {
        path: "/runs/search",
        body: {
          ...(status !== undefined && { status }),
          ...(graph !== undefined && { graph_id: graph }),
          ...(assistant !== undefined && { assistant_id: assistant }),
          ...(thread !== undefined && { thread_id: thread }),
          ...(since !== undefined && { created_after: since.toISOString() }),
        },
        limit,
        parse: (items) => runs.parse(items),
        idOf: ({ run_id: id }) => String(id),
      });
      const titles = ["RUN", "STATUS", "GRAPH", "THREAD", "CREATED", "TOOK", "ATTEMPTS", "ERROR"];
      const rowOf = (run: Run): string[] => [
        run.run_id ?? "",
        run.status ?? "",
        run.graph_id ?? "",
        run.thread_id ?? "",
        run.created_at?.slice(0, 19) ?? "",
        took(run),
        String(run.attempts ?? "-"),
        run.error == null ? "" : `${run.error.error}: ${run.error.message}`,
      ];
      writeListed(found, options, { titles, rowOf }, surroundings);
    });

  onServer(command.command("show"))
    .description("Shows a run: status, times, tokens and the error.")
    .argument("<run>", "its id", idArgument)
    .action(async (id: string, flags: ServerFlags) => {
      const server = new RemoteServer(flags, environment);
      const run = await findRun(server, id);
      const trace = await readTrace(server, run);
      write(
        flags.json
          ? jsonLine({ ...run, failed_in: failedNodesIn(trace), trace: trace ?? null })
          : runText(run, trace),
      );
    });

  onServer(command.command("tail"))
    .description("Follows a run's stream until it ends, from the first stored event.")
    .argument("<run>", "its id", idArgument)
    .action(async (id: string, flags: ServerFlags) => {
      const server = new RemoteServer(flags, environment);
      if (!(await tail(server, `/runs/${id}/stream`, flags.json, surroundings))) return;
      const ended = await endOf(server, id);
      if (ended === undefined) return;
      const text = endText(ended, id);
      // The event stream of an ended run does not name the run's status.
      if (FAILED.includes(ended.status ?? "")) throw new StartError(text);
      if (!flags.json) note(`${text}\n`);
    });

  onServer(command.command("cancel"))
    .description("Cancels pending and running runs.")
    .argument("<run...>", "their ids", idsArgument)
    .addOption(
      new Option(
        "--action <action>",
        "interrupt keeps the run's results, rollback undoes and deletes the run",
      )
        .choices(["interrupt", "rollback"])
        .default("interrupt"),
    )
    .action(async (ids: string[], { action, json, ...flags }: ServerFlags & { action: string }) => {
      const server = new RemoteServer(flags, environment);
      const act = (id: string): Promise<void> => cancel(server, id, action);
      await forEachId(ids, { noun: "Run", done: "cancelled", json, act }, surroundings);
    });
  return command;
};
