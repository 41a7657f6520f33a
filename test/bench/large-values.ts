import { median, now } from "./load.ts";
import { relationBytes } from "./long-thread.ts";
import { createThreads, type Scenario } from "./scenario.ts";
import type { RemoteServer } from "./server-process.ts";

const TURNS = 100;
const REPORT_EVERY = 10;
/** Of the turns without a report, at the start and at the end. */
const COMPARED = 9;

const STREAMS = {
  "what is new": { stream_mode: ["updates"] },
  /** As front ends do that show the state, and come back after a reload. */
  "whole states, resumable": { stream_mode: ["values"], stream_resumable: true },
} as const;

const turnOf = async (
  { http }: RemoteServer,
  thread: string,
  turn: number,
  stream: (typeof STREAMS)[keyof typeof STREAMS],
): Promise<number> => {
  const content = turn % REPORT_EVERY === 0 ? "report" : "hello";
  const body = { assistant_id: "large", input: { messages: [{ role: "user", content }] }, ...stream };
  const begun = now();
  await http.stream(`/threads/${thread}/runs/stream`, body, () => undefined);
  return now() - begun;
};

export const largeValues: Scenario = {
  name: "large-values",
  about: `a conversation of ${TURNS} turns, in which a tool returns a megabyte every ${REPORT_EVERY} turns`,
  onRequest: true,
  async run(bench) {
    for (const remote of bench.remotes) {
      for (const [label, stream] of Object.entries(STREAMS)) {
        const add = (what: string, unit: string, value: number): void =>
          bench.figures.add(
            "large-values",
            { label: `${label}, ${what}`, unit, better: "less" },
            remote.name,
            value,
          );
        const [thread = ""] = await createThreads(remote, 1);
        const isOwn = remote.name === "threadloom";
        const before = isOwn ? await relationBytes(bench, "threadloom", ".") : NaN;
        const times: number[] = [];
        for (let turn = 1; turn <= TURNS; turn += 1) {
          const time = await turnOf(remote, thread, turn, stream);
          if (turn % REPORT_EVERY !== 0) times.push(time);
        }
        add("first turns", "ms/turn", median(times.slice(0, COMPARED)));
        add("last turns", "ms/turn", median(times.slice(-COMPARED)));
        if (isOwn)
          add("disk", "KB/turn", ((await relationBytes(bench, "threadloom", ".")) - before) / TURNS / 1000);
        bench.progress(
          `large-values: ${remote.name}: ${label}: ${median(times.slice(-COMPARED)).toFixed(0)} ms/turn`,
        );
      }
    }
  },
};
