import type { BareLibrary } from "./bare-library.ts";
import { median, now, pause, percentile, run } from "./load.ts";
import { createFigures } from "./report.ts";
import type { ContenderName, FigureDescription } from "./results.ts";
import { createThreads, HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";
import type { RemoteServer } from "./server-process.ts";
import { readEvents } from "./server-sent-events.ts";

const everyLibrary = (bench: Bench): BareLibrary[] => [
  bench.libraries.none,
  bench.libraries.memory(),
  bench.libraries.official,
];

const FIRST: FigureDescription = { label: "first update, p50", unit: "ms", better: "less", wanted: "<= 6" };
const CLOSED: FigureDescription = { label: "closed, p50", unit: "ms", better: "less" };
const STREAM_LAG: FigureDescription = {
  label: "closed after the graph's end, p50",
  unit: "ms",
  better: "less",
  wanted: "<= 10",
};
const WAIT_LAG: FigureDescription = { ...STREAM_LAG, label: "wait answered after the graph's end, p50" };
const JOIN_LAG: FigureDescription = { ...STREAM_LAG, label: "join answered after the graph's end, p50" };

/** The duration of graphs whose end is timed: longer than any request needs to reach them. */
const TIMED_INPUT = { milliseconds: 40 };

interface Ended {
  ended_at: number;
}

const remoteStream = async (bench: Bench, remote: RemoteServer, count: number): Promise<void> => {
  const firsts: number[] = [];
  const threads = await createThreads(remote, count);
  const { latencies } = await run(1, count, async (index) => {
    const started = now();
    let first: number | undefined;
    const body = { assistant_id: "two-step", input: HELLO, stream_mode: ["updates"] };
    const onEvent = (name: string): void => {
      if (name === "updates") first ??= now() - started;
    };
    await remote.http.stream(`/threads/${threads[index]}/runs/stream`, body, readEvents(onEvent));
    if (first === undefined) throw new Error("A stream ended without an update.");
    firsts.push(first);
  });
  bench.figures.add("stream", FIRST, remote.name, percentile(firsts, 0.5));
  bench.figures.add("stream", CLOSED, remote.name, percentile(latencies, 0.5));
  bench.progress(
    `stream: ${remote.name}: first ${median(firsts).toFixed(2)} ms, closed ${median(latencies).toFixed(2)} ms`,
  );
};

const remoteLags = async (bench: Bench, remote: RemoteServer, count: number): Promise<void> => {
  const lags = { stream: [] as number[], wait: [] as number[], join: [] as number[] };
  const body = { assistant_id: "timed", input: TIMED_INPUT };
  const threads = await createThreads(remote, count * 3);
  for (let index = 0; index < count; index += 1) {
    let endedAt = NaN;
    const onEvent = (name: string, data: string): void => {
      if (name === "updates") endedAt = (JSON.parse(data) as { work: Ended }).work.ended_at;
    };
    await remote.http.stream(
      `/threads/${threads[index * 3]}/runs/stream`,
      { ...body, stream_mode: ["updates"] },
      readEvents(onEvent),
    );
    lags.stream.push(now() - endedAt);

    const waited = await remote.http.post(`/threads/${threads[index * 3 + 1]}/runs/wait`, body);
    lags.wait.push(now() - (JSON.parse(waited.body) as Ended).ended_at);

    const thread = threads[index * 3 + 2];
    const { run_id } = await remote.http.json<{ run_id: string }>(`/threads/${thread}/runs`, body);
    const joined = await remote.http.get(`/threads/${thread}/runs/${run_id}/join`);
    lags.join.push(now() - (JSON.parse(joined.body) as Ended).ended_at);
  }
  bench.figures.add("stream", STREAM_LAG, remote.name, percentile(lags.stream, 0.5));
  bench.figures.add("stream", WAIT_LAG, remote.name, percentile(lags.wait, 0.5));
  bench.figures.add("stream", JOIN_LAG, remote.name, percentile(lags.join, 0.5));
  bench.progress(
    `stream: ${remote.name}: after the graph's end: closed ${median(lags.stream).toFixed(2)} ms, ` +
      `wait ${median(lags.wait).toFixed(2)} ms, join ${median(lags.join).toFixed(2)} ms`,
  );
};

const libraryStream = async (
  bench: Bench,
  library: BareLibrary,
  count: number,
  lagCount: number,
): Promise<void> => {
  const twoStep = library.graph("two-step");
  const firsts: number[] = [];
  const { latencies } = await run(1, count, async () => {
    const started = now();
    let first: number | undefined;
    for await (const _ of await twoStep.stream(HELLO, { ...library.newThread(), streamMode: "updates" })) {
      first ??= now() - started;
    }
    firsts.push(first ?? NaN);
  });
  bench.figures.add("stream", FIRST, library.name, percentile(firsts, 0.5));
  bench.figures.add("stream", CLOSED, library.name, percentile(latencies, 0.5));

  const timed = library.graph("timed");
  const lags: number[] = [];
  for (let index = 0; index < lagCount; index += 1) {
    const { ended_at } = (await timed.invoke(TIMED_INPUT, library.newThread())) as Ended;
    lags.push(now() - ended_at);
  }
  const lag = percentile(lags, 0.5);
  for (const figure of [STREAM_LAG, WAIT_LAG, JOIN_LAG])
    bench.figures.add("stream", figure, library.name, lag);
};

export const stream: Scenario = {
  name: "stream",
  about: "/threads/{id}/runs/stream of a graph of two steps with updates, on an idle server",
  async run(bench) {
    const count = scaled(bench, 100);
    const lagCount = scaled(bench, 20);
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      for (const remote of bench.remotes) {
        if (repeat === 0) await run(1, 50, () => warmUpStream(remote));
        await remoteStream(bench, remote, count);
        await remoteLags(bench, remote, lagCount);
      }
      for (const library of everyLibrary(bench)) await libraryStream(bench, library, count, lagCount);
    }
  },
};

const warmUpStream = async (remote: RemoteServer): Promise<void> => {
  const body = { assistant_id: "two-step", input: HELLO, stream_mode: ["updates"] };
  await remote.http.stream("/runs/stream", body, () => undefined);
};

/** Many concurrent streams, each of which has to deliver a known number of events. */
interface Burst {
  scenario: string;
  graph: "custom-events" | "tokens";
  input: object;
  mode: { remote: string; library: string };
  counts: (name: string, data: string) => boolean;
  streams: number;
  eventsPerStream: number;
  label: string;
  wanted?: string;
}

const LOST = (burst: Burst): FigureDescription => ({
  label: `lost, ${burst.label}`,
  unit: "events",
  better: "less",
  wanted: "0",
});

const report = (
  bench: Bench,
  burst: Burst,
  contender: ContenderName,
  received: number,
  elapsedMs: number,
): void => {
  const expected = burst.streams * burst.eventsPerStream;
  const perSecond = (received / elapsedMs) * 1000;
  bench.figures.add(
    burst.scenario,
    { label: burst.label, unit: "events/s", better: "more", ...(burst.wanted && { wanted: burst.wanted }) },
    contender,
    perSecond,
  );
  bench.figures.add(burst.scenario, LOST(burst), contender, expected - received);
  const lost = expected === received ? "" : `, ${expected - received} lost`;
  bench.progress(`${burst.scenario}: ${contender}: ${burst.label}: ${perSecond.toFixed(0)} events/s${lost}`);
};

const remoteBurst = async (bench: Bench, remote: RemoteServer, burst: Burst): Promise<void> => {
  const threads = await createThreads(remote, burst.streams);
  let received = 0;
  const { elapsedMs } = await run(burst.streams, burst.streams, async (index) => {
    const onData = readEvents((name, data) => {
      if (burst.counts(name, data)) received += 1;
    });
    const body = { assistant_id: burst.graph, input: burst.input, stream_mode: [burst.mode.remote] };
    await remote.http.stream(`/threads/${threads[index]}/runs/stream`, body, onData);
  });
  report(bench, burst, remote.name, received, elapsedMs);
};

const libraryBurst = async (bench: Bench, library: BareLibrary, burst: Burst): Promise<void> => {
  const graph = library.graph(burst.graph);
  let received = 0;
  const { elapsedMs } = await run(burst.streams, burst.streams, async () => {
    const chunks = await graph.stream(burst.input, {
      ...library.newThread(),
      streamMode: burst.mode.library,
    });
    for await (const chunk of chunks) {
      const isToken = burst.mode.library !== "messages" || isTokenMessage((chunk as unknown[])[0]);
      if (isToken) received += 1;
    }
  });
  report(bench, burst, library.name, received, elapsedMs);
};

/** The input is sent as a message, too. */
const isTokenMessage = (message: unknown): boolean =>
  /^t\d+ $/.test(String((message as { content?: unknown }).content));

const burstScenario = (name: string, about: string, bursts: (bench: Bench) => Burst[]): Scenario => ({
  name,
  about,
  async run(bench) {
    for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
      for (const burst of bursts(bench)) {
        for (const remote of bench.remotes) {
          if (repeat === 0) await remoteBurst({ ...bench, figures: createFigures() }, remote, burst);
          await remoteBurst(bench, remote, burst);
          await pause(100); // remaining work of the streams must not affect the next measurement
        }
        for (const library of everyLibrary(bench)) {
          if (repeat === 0) await libraryBurst({ ...bench, figures: createFigures() }, library, burst);
          await libraryBurst(bench, library, burst);
        }
      }
    }
  },
});

export const events = burstScenario(
  "events",
  "custom events, as fast as the graph can send them",
  (bench) => {
    const burst = (streams: number, eventsPerStream: number): Burst => ({
      scenario: "events",
      graph: "custom-events",
      input: { count: eventsPerStream },
      mode: { remote: "custom", library: "custom" },
      counts: (name) => name === "custom",
      streams,
      eventsPerStream,
      label: `${streams} x ${eventsPerStream}`,
      wanted: ">= 15,000",
    });
    return [burst(1, scaled(bench, 20_000)), burst(50, scaled(bench, 400))];
  },
);

export const tokens = burstScenario(
  "tokens",
  "tokens of a model that doesn't pause, as message chunks",
  (bench) => {
    const eventsPerStream = scaled(bench, 200);
    return [
      {
        scenario: "tokens",
        graph: "tokens",
        input: { ...HELLO, tokens: eventsPerStream },
        mode: { remote: "messages-tuple", library: "messages" },
        counts: (name, data) => name === "messages" && /"content":"t\d+ "/.test(data),
        streams: 50,
        eventsPerStream,
        label: `50 x ${eventsPerStream}`,
      },
    ];
  },
);
