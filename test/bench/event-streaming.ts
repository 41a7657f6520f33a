import { now, pause, percentile, run } from "./load.ts";
import { createFigures } from "./report.ts";
import type { FigureDescription } from "./results.ts";
import { createThreads, HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";
import { readEvents } from "./server-sent-events.ts";

const STREAMS = 50;
const TOKENS = 200;
const WIRES = ["run streams", "resumable run streams", "event streaming"] as const;
type Wire = (typeof WIRES)[number];

const tokensOver = (wire: Wire): FigureDescription => ({
  label: `tokens over ${wire}, ${STREAMS} x ${TOKENS}`,
  unit: "events/s",
  better: "more",
});
const LOST: FigureDescription = { label: "tokens lost", unit: "events", better: "less", wanted: "0" };
const RATIO: FigureDescription = {
  label: "tokens, event streaming ÷ run streams",
  unit: "x",
  better: "more",
  wanted: ">= 0.8",
};
const RESUMABLE_RATIO: FigureDescription = {
  label: "tokens, event streaming ÷ resumable run streams",
  unit: "x",
  better: "more",
};
const firstOver = (wire: Wire): FigureDescription => ({
  label: `first token over ${wire}, p50 after the request`,
  unit: "ms",
  better: "less",
});

/** Streams one run's tokens to the end of the run; reports each on arrival. */
const streamTokens = async (
  { http }: Bench["server"]["remote"],
  wire: Wire,
  threadId: string,
  tokens: number,
  onToken: () => void,
): Promise<void> => {
  const input = { ...HELLO, tokens };
  if (wire !== "event streaming") {
    const isToken = /"content":"t\d+ "/;
    const body = {
      assistant_id: "tokens",
      input,
      stream_mode: ["messages-tuple"],
      stream_resumable: wire === "resumable run streams",
    };
    const onData = readEvents((name, data) => {
      if (name === "messages" && isToken.test(data)) onToken();
    });
    await http.stream(`/threads/${threadId}/runs/stream`, body, onData);
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const onData = readEvents((name, data) => {
      if (name === "messages" && data.includes('"text-delta"')) onToken();
      if (name !== "lifecycle" || !data.includes('"namespace":[]')) return;
      if (!data.includes('"event":"completed"')) return;
      close();
      resolve();
    });
    const start = (): void => {
      const command = { id: 1, method: "run.start", params: { assistant_id: "tokens", input } };
      http.post(`/threads/${threadId}/commands`, command).catch(reject);
    };
    const body = { channels: ["messages", "lifecycle"] };
    const close = http.listen(`/threads/${threadId}/stream/events`, body, { onData, onHead: start });
  });
};

/** Tokens a second of many concurrent streams. */
const burst = async (bench: Bench, wire: Wire, tokens: number): Promise<number> => {
  const { remote } = bench.server;
  const threads = await createThreads(remote, STREAMS);
  let received = 0;
  const { elapsedMs } = await run(STREAMS, STREAMS, (index) =>
    streamTokens(remote, wire, threads[index] ?? "", tokens, () => (received += 1)),
  );
  bench.figures.add("event-streaming", LOST, remote.name, STREAMS * tokens - received);
  const perSecond = (received * 1_000) / elapsedMs;
  bench.figures.add("event-streaming", tokensOver(wire), remote.name, perSecond);
  bench.progress(`event-streaming: ${wire}: ${perSecond.toFixed(0)} tokens/s`);
  await pause(100); // remaining work of the streams must not affect the next measurement
  return perSecond;
};

/** From the request to the first token, of one run after the other. */
const firstTokens = async (bench: Bench, wire: Wire, count: number): Promise<void> => {
  const { remote } = bench.server;
  const lags: number[] = [];
  for (const threadId of await createThreads(remote, count)) {
    const started = now();
    let first: number | undefined;
    await streamTokens(remote, wire, threadId, 1, () => (first ??= now() - started));
    lags.push(first ?? NaN);
  }
  bench.figures.add("event-streaming", firstOver(wire), remote.name, percentile(lags, 0.5));
};

/** The same runs over both wires of this server, in turns. */
export const eventStreaming: Scenario = {
  name: "event-streaming",
  about: "tokens over the protocol wire, beside those over the streams of runs",
  async run(bench) {
    const { remote } = bench.server;
    const tokens = scaled(bench, TOKENS);
    for (const wire of WIRES) await burst({ ...bench, figures: createFigures() }, wire, tokens);
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      const perSecond = new Map<Wire, number>();
      for (const wire of WIRES) perSecond.set(wire, await burst(bench, wire, tokens));
      const own = perSecond.get("event streaming") ?? NaN;
      bench.figures.add("event-streaming", RATIO, remote.name, own / (perSecond.get("run streams") ?? NaN));
      const resumable = perSecond.get("resumable run streams") ?? NaN;
      bench.figures.add("event-streaming", RESUMABLE_RATIO, remote.name, own / resumable);
      for (const wire of WIRES) await firstTokens(bench, wire, scaled(bench, 30));
    }
  },
};
