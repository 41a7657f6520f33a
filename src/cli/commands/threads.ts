import { Command } from "commander";
import { z } from "zod";
import { StartError } from "../../platform/domain/errors.ts";
import { isJsonObject, type JsonObject } from "../../platform/lib/json.ts";
import { storageAnswer, threadExtract } from "../../api/threads/schemas.ts";
import { fieldsText } from "../printable.ts";
import { jsonLine } from "../flags.ts";
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
  $ threadloom threads list --status interrupted --graph agent
  $ threadloom threads show 0199f3a0-0000-7000-8000-000000000000
  $ threadloom threads tail 0199f3a0-0000-7000-8000-000000000000
  $ threadloom threads delete 0199f3a0-0000-7000-8000-000000000000 --yes

These commands call a running server's API: --url and --api-key, or THREADLOOM_URL and THREADLOOM_API_KEY.
Exit codes: 0 done, 1 not done, 2 wrong usage.`;

const STATUSES = ["idle", "busy", "interrupted", "error"];
const CHECKPOINTS_SHOWN = 5;
type Thread = z.output<typeof threadExtract>;
const threads = z.array(threadExtract);

const textIn = (metadata: JsonObject | undefined, key: string): string => {
  const value = metadata === undefined || !Object.hasOwn(metadata, key) ? undefined : metadata[key];
  return typeof value === "string" ? value : "";
};

const checkpointText = (state: JsonObject): string => {
  const { checkpoint, metadata, next, created_at: created } = state;
  const id = isJsonObject(checkpoint) ? String(checkpoint["checkpoint_id"]) : "";
  const [step, source] = isJsonObject(metadata) ? [metadata["step"], metadata["source"]] : [];
  const due = Array.isArray(next) && next.length > 0 ? `next: ${next.join(", ")}` : "";
  return [id, String(created).slice(0, 19), `step ${String(step)}`, String(source), due].join("  ").trimEnd();
};

const threadText = (
  thread: Thread,
  storage: z.output<typeof storageAnswer>,
  states: readonly JsonObject[],
): string => {
  const { metadata, error, interrupts = {} } = thread;
  const waiting = Object.values(interrupts).flat().length;
  return fieldsText([
    ["Thread", thread.thread_id ?? ""],
    ["Status", thread.status ?? ""],
    ["Graph", textIn(metadata, "graph_id")],
    ["Created", thread.created_at ?? ""],
    ["Updated", thread.updated_at ?? ""],
    ["State", `${Object.keys(thread.values ?? {}).join(", ") || "-"}`],
    ["Stored", `${storage.total_bytes} bytes, ${storage.checkpoints.count} checkpoints`],
    ["Interrupts", String(waiting)],
    ...(error === undefined ? [] : [["Error", JSON.stringify(error)] as const]),
    ["Metadata", JSON.stringify(metadata ?? {})],
    ...states.map((state, at) => [at === 0 ? "Checkpoints" : "", checkpointText(state)] as const),
  ]);
};

export const create: CreateCommand = (surroundings) => {
  const { write, environment } = surroundings;
  const command = new Command("threads").description(
    "Lists, shows, follows and deletes threads of a running server.",
  );
  command.addHelpText("after", EXAMPLES);

  listing(command.command("list"), {
    statuses: STATUSES,
    whose: "whose last run was ",
    happened: "changed",
  })
    .description("Lists threads, last changed first.")
    .action(async (options: ListFlags) => {
      const { status, graph, assistant, since, limit } = options;
      const metadata = {
        ...(graph !== undefined && { graph_id: graph }),
        ...(assistant !== undefined && { assistant_id: assistant }),
      };
      const found = await readListed(new RemoteServer(options, environment), {
        path: "/threads/search",
        body: {
          sort_by: "updated_at",
          sort_order: "desc",
          select: ["thread_id", "status", "created_at", "updated_at", "metadata", "error"],
          ...(status !== undefined && { status }),
          ...(Object.keys(metadata).length > 0 && { metadata }),
        },
        limit,
        parse: (items) => threads.parse(items),
        idOf: ({ thread_id: id }) => id ?? "",
        // The API can't filter by `updated_at`, but sorts by it: all later pages are older.
        isPast: ({ updated_at: at }) => since !== undefined && Date.parse(at ?? "") < since.getTime(),
      });
      const titles = ["THREAD", "STATUS", "GRAPH", "CREATED", "UPDATED", "ERROR"];
      const rowOf = (thread: Thread): string[] => [
        thread.thread_id ?? "",
        thread.status ?? "",
        textIn(thread.metadata, "graph_id"),
        thread.created_at?.slice(0, 19) ?? "",
        thread.updated_at?.slice(0, 19) ?? "",
        thread.error == null ? "" : JSON.stringify(thread.error),
      ];
      writeListed(found, options, { titles, rowOf }, surroundings);
    });

  onServer(command.command("show"))
    .description("Shows a thread: status, stored size, and last checkpoints.")
    .argument("<thread>", "its id", idArgument)
    .action(async (id: string, flags: ServerFlags) => {
      const server = new RemoteServer(flags, environment);
      const thread = threadExtract.parse(await server.get(`/threads/${id}`));
      const storage = storageAnswer.parse(await server.get(`/threads/${id}/storage`));
      const history = await server.post(`/threads/${id}/history`, {
        limit: CHECKPOINTS_SHOWN,
        select: ["metadata", "next", "checkpoint", "created_at"],
      });
      const states = Array.isArray(history) ? history.filter(isJsonObject) : [];
      write(
        flags.json
          ? jsonLine({ ...thread, storage, checkpoints: states })
          : threadText(thread, storage, states),
      );
    });

  onServer(command.command("tail"))
    .description("Follows all runs of a thread, until Ctrl-C.")
    .argument("<thread>", "its id", idArgument)
    .action(async (id: string, flags: ServerFlags) => {
      const server = new RemoteServer(flags, environment);
      await tail(server, `/threads/${id}/stream`, flags.json, surroundings);
    });

  onServer(command.command("delete"))
    .description("Deletes threads with their runs and all their data.")
    .argument("<thread...>", "their ids", idsArgument)
    .option("--yes", "confirm; without it the command deletes nothing")
    .action(async (ids: string[], { yes, ...flags }: ServerFlags & { yes?: true }) => {
      if (!yes)
        throw new StartError(
          `Nothing was deleted. Use --yes to delete ${ids.length} threads with all their runs.`,
        );
      const server = new RemoteServer(flags, environment);
      const act = (id: string): Promise<void> => server.delete(`/threads/${id}`);
      await forEachId(ids, { noun: "Thread", done: "deleted", json: flags.json, act }, surroundings);
    });
  return command;
};
