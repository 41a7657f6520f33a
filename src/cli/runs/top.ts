import { z } from "zod";
import { runExtract } from "../../api/runs/schemas.ts";
import type { Trace } from "../../api/runs/traces/schemas.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { cut, printable, tableText } from "../printable.ts";
import { durationText } from "../remote/duration.ts";
import type { RemoteServer } from "../remote/server.ts";
import { readTrace, type Run } from "./show.ts";

/** The newest ones: the server finds these quickly in any table. */
const SEARCHED = 100;
/** Requests of a refresh; a caller may read 3,000 times a minute. */
const TRACES_READ = 20;
const TRACES_AT_ONCE = 4;
/** Narrower terminals have no room for the ids of threads. */
const COLUMNS_WITH_THREADS = 120;

const FIELDS = ["run_id", "thread_id", "graph_id", "created_at", "run_started_at", "available_at"];

/** A part of the answer of `/queue`. */
const counts = z.object({
  num_running: z.number(),
  num_pending: z.number(),
  oldest_seconds: z.number().nullable(),
});

interface RunningRun {
  run: Run;
  /** The newest node. Undefined: not known. */
  node: string | undefined;
  tokens: number | undefined;
}

export interface Snapshot {
  running: RunningRun[];
  waiting: Run[];
  /** Undefined if the caller may not read the queue. */
  queue: z.output<typeof counts> | undefined;
}

const unlessRefused = (error: unknown): undefined => {
  if (!(error instanceof StartError)) throw error;
};

const newestNode = ({ attempts }: Trace): string | undefined => {
  const nodes = (attempts.at(-1)?.spans ?? []).filter(({ kind }) => kind === "node");
  return (nodes.findLast(({ status }) => status === "running") ?? nodes.at(-1))?.name;
};

const tokensOf = ({ usage }: Trace): number =>
  usage.reduce((sum, used) => sum + used.input_tokens + used.output_tokens, 0);

const since = (time: string | null | undefined): number => (time == null ? 0 : Date.parse(time));

/**
 * Reads the runs with the longest time first, and the traces of the first 20 running ones.
 * @param limit how many rows at most; running runs come first
 */
export const readTop = async (server: RemoteServer, limit: number): Promise<Snapshot> => {
  const search = async (status: string): Promise<Run[]> => {
    const body = { status, limit: SEARCHED, select: FIELDS };
    return z.array(runExtract).parse((await server.search("/runs/search", body)).items);
  };
  const [started, pending, queue] = await Promise.all([
    search("running"),
    search("pending"),
    server.get("/queue").then((answer) => counts.safeParse(answer).data, unlessRefused),
  ]);
  started.sort((one, other) => since(one.run_started_at) - since(other.run_started_at));
  pending.sort((one, other) => since(one.available_at) - since(other.available_at));
  const running = started
    .slice(0, limit)
    .map((run): RunningRun => ({ run, node: undefined, tokens: undefined }));
  const unread = running.slice(0, TRACES_READ).values();
  const readOn = async (): Promise<void> => {
    for (const row of unread) {
      // A run may end and be deleted meanwhile, and other servers have no traces.
      const trace = await readTrace(server, row.run).catch(unlessRefused);
      if (trace !== undefined) Object.assign(row, { node: newestNode(trace), tokens: tokensOf(trace) });
    }
  };
  await Promise.all(Array.from({ length: TRACES_AT_ONCE }, readOn));
  return { running, waiting: pending.slice(0, limit - running.length), queue };
};

const count = new Intl.NumberFormat("en-US");

const headText = ({ queue, running, waiting }: Snapshot): string => {
  if (queue === undefined) return `${running.length} running, ${waiting.length} waiting runs are shown`;
  const { num_running: active, num_pending: pending, oldest_seconds: oldest } = queue;
  const age = oldest === null ? "" : `, the oldest for ${durationText(oldest * 1_000)}`;
  return `${count.format(active)} running, ${count.format(pending)} waiting${age}`;
};

const agoText = (time: string | null | undefined): string =>
  time == null ? "-" : durationText(Math.max(0, Date.now() - Date.parse(time)));

const waitText = ({ available_at: due, created_at: created }: Run): string => {
  const from = due ?? created;
  if (from === undefined) return "-";
  const left = Date.parse(from) - Date.now();
  return left > 0 ? `due in ${durationText(left)}` : agoText(from);
};

interface Size {
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** @param remark stands in the first line, e.g. why the rows are old */
export const topText = (snapshot: Snapshot, { columns, rows }: Size, remark = ""): string => {
  const withThreads = columns === undefined || columns >= COLUMNS_WITH_THREADS;
  const thread = (run: Run): string[] => (withThreads ? [run.thread_id ?? ""] : []);
  const threadTitle = withThreads ? ["THREAD"] : [];
  const uncut = withThreads ? 2 : 1;
  const running = snapshot.running.map(({ run, node, tokens }) => [
    run.run_id ?? "",
    ...thread(run),
    agoText(run.run_started_at),
    tokens === undefined ? "-" : count.format(tokens),
    node ?? "-",
    run.graph_id ?? "",
  ]);
  const waiting = snapshot.waiting.map((run) => [
    run.run_id ?? "",
    ...thread(run),
    waitText(run),
    run.graph_id ?? "",
  ]);
  const head = printable([headText(snapshot), ...(remark === "" ? [] : [remark])].join(". "));
  const text = [
    `${columns === undefined ? head : cut(head, columns)}\n`,
    running.length === 0
      ? ""
      : `\n${tableText(["RUNNING", ...threadTitle, "TIME", "TOKENS", "NODE", "GRAPH"], running, columns, uncut)}`,
    waiting.length === 0
      ? ""
      : `\n${tableText(["WAITING", ...threadTitle, "TIME", "GRAPH"], waiting, columns, uncut)}`,
  ].join("");
  if (rows === undefined) return text;
  const lines = text.split("\n");
  return lines.length <= rows ? text : `${lines.slice(0, rows - 2).join("\n")}\n…\n`;
};
