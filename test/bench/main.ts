/**
 * `npm run bench`: starts the server as a process of its own on a PostgreSQL of its own, sends requests over HTTP, and prints every figure
 * beside the bare library's in the same run. docs/benchmarks.md explains the figures.
 */
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { access } from "./access.ts";
import { compareAgainst } from "./against.ts";
import { createBareLibraries, OFFICIAL_DATABASE } from "./bare-library.ts";
import { background } from "./burst.ts";
import { CHARTS, drawCharts } from "./charts/draw.ts";
import { checkpoints } from "./checkpoints.ts";
import { printedCounts } from "./counts/print.ts";
import { now } from "./load.ts";
import { largeValues } from "./large-values.ts";
import { longThread } from "./long-thread.ts";
import { installNode, OWN_NODE, type ServerNode } from "./node-version.ts";
import { currentLoad, describeMachine, formatMachine } from "./machine.ts";
import { startPeer } from "./peer.ts";
import { protocols } from "./protocols.ts";
import { createFigures, formatTable } from "./report.ts";
import { replicas } from "./replicas.ts";
import { readResults, writeResults, type Results } from "./results.ts";
import { tenSteps, wait } from "./runs.ts";
import { scale } from "./scale/scale.ts";
import type { Bench, Scenario } from "./scenario.ts";
import { createServerUnderTest, makeFolder, type RemoteServer } from "./server-process.ts";
import { formatStatements, resetStatements } from "./statements.ts";
import { dev } from "./dev.ts";
import { firstAnswer } from "./first-answer.ts";
import { eventStreaming } from "./event-streaming.ts";
import { events, stream, tokens } from "./streams.ts";
import { search, state, threads } from "./threads.ts";
import { workers } from "./workers.ts";

const SCENARIOS: readonly Scenario[] = [
  wait,
  stream,
  events,
  tokens,
  eventStreaming,
  threads,
  state,
  search,
  background,
  tenSteps,
  checkpoints,
  longThread,
  largeValues,
  replicas,
  workers,
  access,
  protocols,
  scale,
  dev,
  firstAnswer,
];

const HELP = `npm run bench -- [options]

  --only a,b       Only these scenarios (see below).
  --quick          A quarter of the work, once: to see that it runs, not to compare.
  --all            Also the scenarios that run only on request: some minutes more.
  --turns 200,1000 How long the long threads get.
  --database url   Measure 'scale' on this PostgreSQL of this machine, as a superuser, instead of on the embedded one.
  --peer           Measure @langchain/langgraph-api (in memory), too; it is installed in a folder apart.
  --json file      Write all values, of every repeat, as JSON.
  --charts folder  Write them there as results.json, and the charts that are drawn of them (SVG).
  --draw file      Measure nothing: draw the charts of a file that --json wrote, into --charts or beside it.
  --profile folder Write a CPU profile of the server there (open it in a browser's developer tools).
                   With --against, also print the time of each package and district in both.
  --against commit What a run costs here and in another commit, by turns (of wait, stream, ten-steps, search).
                   Also a folder with a checkout of it.
  --with NAME=value  With --against: a variable of this checkout's server. Also several times.
  --node version   Run the server on this Node, from npm's package 'node'; with --against only the one of this checkout.
  --counts         Measure no time: count statements, rows, WAL and calls of a request, with --against also of another commit.
  --statements     After each scenario, show what the server asked of the database.

Scenarios:
  start${" ".repeat(12)}from the start of the process to the first answered request
${SCENARIOS.map(({ name, about, onRequest }) => `  ${name.padEnd(16)} ${about}${onRequest ? " (on request)" : ""}`).join("\n")}
`;

const DEFAULT_TURNS = "200,1000";

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    quick: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    turns: { type: "string", default: DEFAULT_TURNS },
    peer: { type: "boolean", default: false },
    database: { type: "string" },
    json: { type: "string" },
    charts: { type: "string" },
    draw: { type: "string" },
    profile: { type: "string" },
    against: { type: "string" },
    with: { type: "string", multiple: true, default: [] },
    node: { type: "string" },
    counts: { type: "boolean", default: false },
    statements: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const startedAt = now();
const progress = (text: string): void => {
  const seconds = ((now() - startedAt) / 1000).toFixed(0).padStart(4);
  process.stderr.write(`[${seconds} s] ${text}\n`);
};

const chosenScenarios = (): { start: boolean; scenarios: Scenario[] } => {
  const wanted = options.only?.split(",").map((name) => name.trim());
  const names = ["start", ...SCENARIOS.map(({ name }) => name)];
  const unknown = wanted?.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(`There is no scenario '${unknown}'. There are: ${names.join(", ")}.`);
  return {
    start: wanted?.includes("start") ?? true,
    scenarios: SCENARIOS.filter(({ name, onRequest }) =>
      wanted === undefined ? onRequest !== true || options.all : wanted.includes(name),
    ),
  };
};

/** The charts of results, in an existing folder. */
const draw = async (results: Results, folder: string): Promise<void> => {
  const files = await drawCharts(results, folder);
  if (files.length === 0)
    throw new Error(
      `There is nothing to draw: ${Object.keys(CHARTS).join(" and ")} need the scenarios wait or ten-steps, and long-thread.`,
    );
  progress(`drawn: ${files.join(", ")}`);
};

/** The command for the same figures, without the paths of output files. */
const commandLine = (): string =>
  [
    "npm run bench --",
    ...(options.only === undefined ? [] : ["--only", options.only]),
    ...(["quick", "all", "peer"] as const).filter((name) => options[name]).map((name) => `--${name}`),
    ...(options.turns === DEFAULT_TURNS ? [] : ["--turns", options.turns]),
    ...(options.node === undefined ? [] : ["--node", options.node]),
  ].join(" ");

/** The measured starts after the first one. */
const LATER_STARTS = 3;

type Closers = (() => Promise<void>)[];

/** Does `work`, and then closes its resources in reverse order; also on Ctrl-C. */
const closingAll = async (work: (closers: Closers) => Promise<void>): Promise<void> => {
  const closers: Closers = [];
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      for (const closer of closers.reverse())
        await closer().catch((error: unknown) => progress(String(error)));
    })());
  const onSignal = (): void => {
    progress("stopping what was started");
    void close().finally(() => process.exit(130));
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  try {
    await work(closers);
  } finally {
    await close();
  }
};

const chosenNode = async (): Promise<ServerNode> =>
  options.node === undefined ? OWN_NODE : await installNode(options.node, progress);

const against = (commit: string): Promise<void> =>
  closingAll(async (closers) => {
    const profileFolder = options.profile === undefined ? undefined : await makeFolder(options.profile);
    const { quick, statements } = options;
    const only = options.only?.split(",").map((name) => name.trim());
    const node = await chosenNode();
    const environment = Object.fromEntries(
      options.with.map((text) => {
        const end = text.indexOf("=");
        if (end < 1) throw new Error(`--with ${text} is not of the form NAME=value.`);
        return [text.slice(0, end), text.slice(end + 1)];
      }),
    );
    const loadBefore = currentLoad();
    const compared = { commit, only, node, environment, quick, statements, profileFolder, closers, progress };
    console.log(`\n${await compareAgainst(compared)}`);
    console.log(`Load before: ${loadBefore.toFixed(1)}.`);
  });

const COUNTED_TRIES = 24;

const counts = (): Promise<void> =>
  closingAll(async (closers) => {
    const tries = options.quick ? Math.ceil(COUNTED_TRIES / 4) : COUNTED_TRIES;
    const table = await printedCounts({ commit: options.against, tries, closers, progress });
    console.log(`\n${table}\n\nLower quartiles of ${tries} tries; Node ${process.version}.`);
  });

const main = (): Promise<void> =>
  closingAll(async (closers) => {
    // Like src/cli/start/serve.ts, before any graph runs: otherwise tokens get lost without a saver, too.
    process.env["LANGCHAIN_CALLBACKS_BACKGROUND"] = "false";
    process.env["LANGSMITH_TRACING"] = "false";
    const { start, scenarios } = chosenScenarios();
    const node = await chosenNode();
    const loadBefore = currentLoad();
    const figures = createFigures();
    const profileFolder = options.profile === undefined ? undefined : await makeFolder(options.profile);
    const chartFolder = options.charts === undefined ? undefined : await makeFolder(options.charts);
    const server = await createServerUnderTest({
      node: node.path,
      nodeOptions: profileFolder === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`],
    });
    closers.push(() => server.close());

    progress("start: a new data folder");
    const firstStartMs = await server.start();
    if (options.statements) await server.prepareStatements();
    const laterStarts: number[] = [];
    for (let count = 0; count < (start ? LATER_STARTS : options.statements ? 1 : 0); count += 1) {
      await server.stop();
      laterStarts.push(await server.start());
    }
    if (start) {
      const add = (label: string, wanted: string, value: number): void =>
        figures.add("start", { label, unit: "ms", better: "less", wanted }, "threadloom", value);
      add("first answer, first time", "< 5,000", firstStartMs);
      for (const elapsedMs of laterStarts) add("first answer, after that", "< 2,000", elapsedMs);
      progress(
        `start: ${firstStartMs.toFixed(0)} ms, then ${laterStarts.map((ms) => ms.toFixed(0)).join(", ")} ms`,
      );
    }
    const machine = await describeMachine(server, node.version, loadBefore);
    const memoryAtStart = await server.remote.memory();

    const libraries = await createBareLibraries(
      await server.createDatabase(OFFICIAL_DATABASE),
      server.postmasterPid,
    );
    closers.push(() => libraries.close());
    const remotes: RemoteServer[] = [server.remote];
    const peer = options.peer ? await startPeer(progress) : undefined;
    if (peer !== undefined) {
      closers.push(() => peer.close());
      remotes.push(peer.remote);
    }

    const bench: Bench = {
      server,
      remotes,
      libraries,
      figures,
      repeats: options.quick ? 1 : 3,
      scale: options.quick ? 0.25 : 1,
      turns: options.turns.split(",").map(Number),
      database: options.database,
      atEnd: (closer) => closers.push(closer),
      progress,
    };
    const traces: string[] = [];
    for (const scenario of scenarios) {
      progress(`${scenario.name}: ${scenario.about}`);
      if (options.statements) await resetStatements(server);
      await scenario.run(bench);
      progress(
        `${scenario.name}: done; the server holds ${(await server.remote.memory()).now.toFixed(0)} MiB`,
      );
      if (options.statements) traces.push(`${scenario.name}:\n${await formatStatements(server)}`);
    }

    for (const remote of remotes) {
      const { now: held, peak } = await remote.memory();
      const figure = { unit: "MiB", better: "less" } as const;
      if (remote.name === "threadloom") {
        figures.add("memory", { ...figure, label: "after the start" }, remote.name, memoryAtStart.now);
      }
      figures.add("memory", { ...figure, label: "after all", wanted: "<= 300" }, remote.name, held);
      figures.add("memory", { ...figure, label: "at most" }, remote.name, peak);
    }

    if (traces.length > 0) console.log(`\n${traces.join("\n\n")}`);
    console.log(`\n${formatTable(figures.all())}\n\n${formatMachine(machine)}`);
    console.log(
      `Medians of ${bench.repeats} repeats${options.quick ? " (--quick: not for comparison)" : ""}.`,
    );
    const results: Results = {
      command: commandLine(),
      machine,
      repeats: bench.repeats,
      figures: figures.all(),
      series: figures.allSeries(),
    };
    if (options.json !== undefined) await writeResults(options.json, results);
    if (chartFolder !== undefined) {
      await writeResults(join(chartFolder, "results.json"), results);
      await draw(results, chartFolder);
    }
    if (profileFolder !== undefined) progress(`the profiles are in ${profileFolder}, one per start`);
  });

const drawOnly = async (file: string): Promise<void> =>
  draw(await readResults(file), await makeFolder(options.charts ?? dirname(file)));

if (options.help) console.log(HELP);
else if (options.draw !== undefined) await drawOnly(options.draw);
else if (options.counts) await counts();
else if (options.against !== undefined) await against(options.against);
else await main();
