import { Command, Option } from "commander";
import { z } from "zod";
import { StartError } from "../../platform/domain/errors.ts";
import { isJsonObject } from "../../platform/lib/json.ts";
import { runExtract } from "../../api/runs/schemas.ts";
import { printable, tableText } from "../printable.ts";
import { forEachId, idsArgument } from "../remote/each.ts";
import { listing, readListed, type ListFlags } from "../remote/listing.ts";
import { idArgument, onServer, remoteServer, type RemoteServer, type ServerFlags } from "../remote/server.ts";
import { tail } from "../remote/tail.ts";
import { showRun, took, type Run } from "../runs/show.ts";
import type { CreateCommand } from "./command.ts";

const EXAMPLES = `
Examples:
  $ threadloom runs list --status error --since 24h
  $ threadloom runs show 0199f3a0-0000-7000-8000-000000000000
  $ threadloom runs tail 0199f3a0-0000-7000-8000-000000000000
  $ threadloom runs cancel 0199f3a0-0000-7000-8000-000000000000

These commands call a running server's API: --url and --api-key, or THREADLOOM_URL and THREADLOOM_API_KEY.
'show --json' has the whole trace in 'trace'.
Exit codes: 0 done, 1 not done, or the run that was followed failed, 2 wrong usage.`;

const STATUSES = ["pending", "running", "error", "success", "timeout", "interrupted"];
const runs = z.array(runExtract);

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

export const createRuns: CreateCommand = (surroundings) => {
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
    .description("Shows a run: status, tokens, the error, and a timeline of its nodes, models and tools.")
    .argument("<run>", "its id", idArgument)
    .option("--thread <id>", "the run's thread, for servers that can't search runs", idArgument)
    .action(async (id: string, { thread, ...flags }: ServerFlags & { thread?: string }) => {
      const server = remoteServer(flags, environment);
      const run =
        thread === undefined
          ? await findRun(server, id)
          : runExtract.parse(await server.get(`/threads/${thread}/runs/${id}`));
      await showRun(server, run, flags.json === true, surroundings);
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
