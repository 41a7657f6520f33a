import { Command, Option } from "commander";
import { z } from "zod";
import { StartError } from "../../platform/domain/errors.ts";
import { isJsonObject } from "../../platform/lib/json.ts";
import { runExtract } from "../../api/runs/schemas.ts";
import { trace as traceAnswer, type Trace } from "../../api/runs/traces/schemas.ts";
import { fieldsText, printable, tableText } from "../printable.ts";
import {
  durationText,
  forEachId,
  idArgument,
  idsArgument,
  listing,
  onServer,
  readListed,
  remoteServer,
  tail,
  type ListFlags,
  type RemoteServer,
  type ServerFlags,
} from "../remote/server.ts";
import type { CreateCommand } from "./command.ts";

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

/** Undefined if this caller may not read the trace, or if the server is of another version. */
const readTrace = async (
  server: RemoteServer,
  { thread_id: threadId, run_id: runId }: Run,
): Promise<Trace | undefined> => {
  try {
    return traceAnswer.safeParse(await server.get(`/threads/${threadId}/runs/${runId}/trace`)).data;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return undefined;
  }
};

const attemptsText = ({ attempts = 0, lost_attempts: lost = 0 }: Run): string => {
  const handedBack = Math.max(0, attempts - lost - 1);
  const ends = [
    ...(lost > 0 ? [`${lost} lost with a server or graph process`] : []),
    ...(handedBack > 0 ? [`${handedBack} handed back by a server`] : []),
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
    if (ended === undefined) throw error;
    throw new StartError(endText(ended, id), {
      cause: error,
    });
  }
};

export const create: CreateCommand = (surroundings) => {
  const { write, note, environment, columns } = surroundings;
  const json = (value: unknown): void => write(`${JSON.stringify(value)}\n`);
  const command = new Command("runs").description(
    "Lists, shows, follows and cancels runs of a running server.",
  );
  command.addHelpText("after", EXAMPLES);

  listing(command.command("list"), { statuses: STATUSES, happened: "were made" })
    .description("Lists runs of all threads, newest first.")
    .option("--thread <id>", "only those of this thread", idArgument)
    .action(async (options: ListFlags & { thread?: string }) => {
      const { status, graph, assistant, thread, since, limit, ...flags } = options;
      const server = remoteServer(flags, environment);
      const answer = await readListed(server, {
        path: "/runs/search",
        body: {
          ...(status !== undefined && { status }),
          ...(graph !== undefined && { graph_id: graph }),
          ...(assistant !== undefined && { assistant_id: assistant }),
          ...(thread !== undefined && { thread_id: thread }),
          ...(since !== undefined && { created_after: since.toISOString() }),
        },
        limit,
        parse: (items) => items.filter(isJsonObject),
        idOf: ({ run_id: id }) => String(id),
      });
      if (flags.json) return json(answer);
      const found = runs.parse(answer);
      if (found.length === 0) return note("There are none.\n");
      const rows = found.map((run) => [
        run.run_id ?? "",
        run.status ?? "",
        run.graph_id ?? "",
        run.thread_id ?? "",
        run.created_at?.slice(0, 19) ?? "",
        took(run),
        String(run.attempts ?? "-"),
        run.error == null ? "" : `${run.error.error}: ${run.error.message}`,
      ]);
      write(
        tableText(
          ["RUN", "STATUS", "GRAPH", "THREAD", "CREATED", "TOOK", "ATTEMPTS", "ERROR"],
          rows,
          columns,
        ),
      );
      if (found.length === limit) note("There may be more. Use a larger --limit.\n");
    });

  onServer(command.command("show"))
    .description("Shows a run: status, times, tokens and the error.")
    .argument("<run>", "its id", idArgument)
    .option("--thread <id>", "the run's thread, for servers that can't search runs", idArgument)
    .action(async (id: string, { thread, ...flags }: ServerFlags & { thread?: string }) => {
      const server = remoteServer(flags, environment);
      const run =
        thread === undefined
          ? await findRun(server, id)
          : runExtract.parse(await server.get(`/threads/${thread}/runs/${id}`));
      const [failedNodes, trace] = await Promise.all([
        run.status === "error" ? failedNodesOf(server, run) : [],
        readTrace(server, run),
      ]);
      if (flags.json) json({ ...run, failed_in: failedNodes, trace: trace ?? null });
      else write(runText(run, failedNodes, trace));
    });

  onServer(command.command("tail"))
    .description("Follows a run's stream until it ends, from the first stored event.")
    .argument("<run>", "its id", idArgument)
    .action(async (id: string, flags: ServerFlags) => {
      const server = remoteServer(flags, environment);
      const isJson = flags.json === true;
      if (!(await tail(server, { path: `/runs/${id}/stream`, json: isJson }, surroundings))) return;
      const ended = await endOf(server, id);
      if (ended === undefined) return;
      const text = endText(ended, id);
      // The event stream of an ended run does not name the run's status.
      if (FAILED.includes(ended.status ?? "")) throw new StartError(text);
      if (!isJson) note(`${text}\n`);
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
    .action(async (ids: string[], { action, ...flags }: ServerFlags & { action: string }) => {
      const server = remoteServer(flags, environment);
      await forEachId(
        ids,
        {
          command: "runs",
          noun: "Run",
          done: "cancelled",
          json: flags.json === true,
          act: (id) => cancel(server, id, action),
        },
        surroundings,
      );
    });
  return command;
};
