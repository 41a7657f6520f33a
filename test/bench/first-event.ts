import type { HttpClient } from "./http-client.ts";
import { median, now, percentile } from "./load.ts";
import type { FigureDescription } from "./results.ts";
import { createThreads, scaled, type Bench } from "./scenario.ts";
import { readEvents } from "./server-sent-events.ts";
import type { Replica } from "./server-process.ts";

const MS = { unit: "ms", better: "less" } as const;
const ON_A: FigureDescription = { ...MS, label: "first event, on A, which executes the run, p50" };
const ON_B: FigureDescription = { ...MS, label: "first event, on B, p50" };
const BEHIND: FigureDescription = { ...MS, label: "first event, B behind A, p50", wanted: "<= 60" };

/** The idle time of a run: longer than readers need to join it. */
const SILENT_MS = 100;
const RUNS = 30;

interface Announced {
  pid: number;
  sent_at: number;
}

interface ReceivedEvent {
  event: Announced;
  /** The times of the response's beginning and of the event's arrival. */
  joinedAt: number;
  heardAt: number;
}

const receive = async (http: HttpClient, path: string): Promise<ReceivedEvent> => {
  let event: Announced | undefined;
  let failure = "";
  let joinedAt = NaN;
  let heardAt = NaN;
  await http.follow(
    path,
    readEvents((name, data) => {
      if (name === "error") failure = data;
      if (name !== "custom" || event !== undefined) return;
      heardAt = now();
      event = JSON.parse(data) as Announced;
    }),
    () => {
      joinedAt = now();
    },
  );
  if (event === undefined || failure !== "")
    throw new Error(`A joined run failed, or its stream ended without its event: ${failure}`);
  return { event, joinedAt, heardAt };
};

/**
 * The time of an event from the graph to a reader on the process that executes the run (A), and to one on another process (B). Runs are
 * created on A; both readers have joined before the event.
 */
export const firstEvents = async (bench: Bench, second: Replica): Promise<void> => {
  const a = bench.server.remote.http;
  const wanted = scaled(bench, RUNS);
  const onA: number[] = [];
  const onB: number[] = [];
  let elsewhere = 0;
  let late = 0;
  while (onA.length < wanted) {
    const [thread] = await createThreads(bench.server.remote, 1);
    const { run_id } = await a.json<{ run_id: string }>(`/threads/${thread}/runs`, {
      assistant_id: "announced",
      input: { milliseconds: SILENT_MS },
      stream_mode: ["custom"],
      stream_resumable: true,
    });
    const path = `/threads/${thread}/runs/${run_id}/stream?stream_mode=custom`;
    const [byA, byB] = await Promise.all([receive(a, path), receive(second.http, path)]);
    const { pid, sent_at } = byA.event;
    // Any process may claim a run, and on a busy machine a reader may come too late: neither is measured.
    if (pid === second.pid) elsewhere += 1;
    else if (!(Math.max(byA.joinedAt, byB.joinedAt) < sent_at)) late += 1;
    else {
      onA.push(byA.heardAt - sent_at);
      onB.push(byB.heardAt - sent_at);
    }
    if (elsewhere + late > wanted * 3) {
      throw new Error(`Of the runs ${elsewhere} were executed by B, and ${late} were joined too late.`);
    }
  }
  const behind = onB.map((lag, index) => lag - onA[index]!);
  const add = (figure: FigureDescription, lags: number[]): void =>
    bench.figures.add("replicas", figure, "threadloom", percentile(lags, 0.5));
  add(ON_A, onA);
  add(ON_B, onB);
  add(BEHIND, behind);
  bench.progress(
    `replicas: first event: on A ${median(onA).toFixed(2)} ms, on B ${median(onB).toFixed(2)} ms ` +
      `(left out: ${elsewhere} executed by B, ${late} joined late)`,
  );
};
