import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHttpClient, type HttpClient } from "./http-client.ts";
import { now, pause, percentile } from "./load.ts";
import { currentLoad } from "./machine.ts";
import { scaled, type Scenario } from "./scenario.ts";
import { readEvents } from "./server-sent-events.ts";
import { spawnProcess } from "./server-process.ts";

const PACKAGES = fileURLToPath(new URL("../../node_modules", import.meta.url));
const COMMAND = fileURLToPath(new URL("../../bin/threadloom.js", import.meta.url));

const EDITS = 50;
/** Between two edits, from the moment in which the first is live: a person who types fast. */
const PAUSE_MS = [1_000, 2_500] as const;
const RUN_LANES = 3;
const STREAM_LANES = 2;
const STREAM_TICKS = 40;
const TICK_MS = 50;
const LIVE_SECONDS = 60;

const agent = (version: number): string => `
import { setTimeout as delay } from "node:timers/promises";
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ ticks: Annotation<number>, version: Annotation<number> });
export const graph = new StateGraph(State)
  .addNode("tick", async ({ ticks }, config) => {
    for (let tick = 0; tick < (ticks ?? 0); tick += 1) {
      config.writer?.({ tick, version: ${version} });
      await delay(${TICK_MS});
    }
    return { version: ${version} };
  })
  .addEdge("__start__", "tick")
  .compile();
`;

interface Values {
  version?: number;
}

interface Load {
  runs: number;
  streams: number;
  lost: string[];
  cut: string[];
}

const makeProject = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-bench-dev-"));
  await mkdir(join(folder, "src"));
  await symlink(PACKAGES, join(folder, "node_modules"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await writeFile(join(folder, "langgraph.json"), '{ "graphs": { "agent": "./src/agent.ts:graph" } }');
  await writeFile(join(folder, "src/agent.ts"), agent(0));
  return folder;
};

/** Runs and streams, one after the other in each lane, until `isOver`. */
const keepBusy = (http: HttpClient, isOver: () => boolean, load: Load): Promise<unknown> => {
  const lane = async (work: () => Promise<void>): Promise<void> => {
    while (!isOver()) await work();
  };
  const oneRun = async (): Promise<void> => {
    const values = await http
      .json<Values>("/runs/wait", { assistant_id: "agent", input: { ticks: 2 } })
      .catch(String);
    load.runs += 1;
    if (typeof values === "string" || values.version === undefined) load.lost.push(JSON.stringify(values));
  };
  const oneStream = async (): Promise<void> => {
    let ticks = 0;
    let last = "";
    const body = {
      assistant_id: "agent",
      input: { ticks: STREAM_TICKS },
      stream_mode: ["custom", "values"],
    };
    const onEvent = (name: string): void => {
      ticks += name === "custom" ? 1 : 0;
      last = name;
    };
    const failure = await http
      .stream("/runs/stream", body, readEvents(onEvent))
      .then(() => undefined, String);
    load.streams += 1;
    if (failure !== undefined || ticks !== STREAM_TICKS || last !== "values")
      load.cut.push(failure ?? `${ticks} ticks, then ${last}`);
  };
  return Promise.all([
    ...Array.from({ length: RUN_LANES }, () => lane(oneRun)),
    ...Array.from({ length: STREAM_LANES }, () => lane(oneStream)),
  ]);
};

/** Milliseconds from writing the file until a later run has ended in the new code. */
const measureEdit = async (folder: string, http: HttpClient, version: number): Promise<number> => {
  const file = join(folder, "src/agent.ts");
  await writeFile(`${file}.new`, agent(version));
  const written = now();
  await rename(`${file}.new`, file);
  for (;;) {
    const values = await http.json<Values>("/runs/wait", { assistant_id: "agent", input: {} });
    if (values.version === version) return now() - written;
    if (now() - written > LIVE_SECONDS * 1_000) throw new Error(`Version ${version} did not become live.`);
    await pause(10);
  }
};

export const dev: Scenario = {
  name: "dev",
  about: `threadloom dev: ${EDITS} edits of a graph during load, from the write to the end of a run in the new code`,
  onRequest: true,
  async run(bench) {
    const folder = await makeProject();
    const child = spawnProcess([process.execPath, COMMAND, "dev", "--port", "0"], {
      cwd: folder,
      environment: { LOG_FORMAT: "json", LOG_LEVEL: "info" },
    });
    try {
      const http = createHttpClient((await child.said(/"msg":"listening on ([^"]+)"/))[1]!);
      await http.json<Values>("/runs/wait", { assistant_id: "agent", input: {} });
      let isOver = false;
      const load: Load = { runs: 0, streams: 0, lost: [], cut: [] };
      const busy = keepBusy(http, () => isOver, load);
      const latencies: number[] = [];
      for (let version = 1; version <= scaled(bench, EDITS); version += 1) {
        const [least, most] = PAUSE_MS;
        await pause(least + Math.random() * (most - least));
        latencies.push(await measureEdit(folder, http, version));
      }
      isOver = true;
      await busy;
      http.close();
      const add = (label: string, unit: string, wanted: string, value: number): void =>
        bench.figures.add("dev", { label, unit, better: "less", wanted }, "threadloom", value);
      add("new code live, p50", "ms", "< 1,000", percentile(latencies, 0.5));
      add("new code live, p95", "ms", "", percentile(latencies, 0.95));
      add("new code live, max", "ms", "", Math.max(...latencies));
      add("runs lost", "runs", "0", load.lost.length);
      add("streams cut", "streams", "0", load.cut.length);
      bench.progress(
        `dev: ${latencies.length} edits beside ${load.runs} runs and ${load.streams} streams, load average ` +
          `${currentLoad().toFixed(1)}; least ${Math.min(...latencies).toFixed(0)} ms; ` +
          `lost ${JSON.stringify(load.lost.slice(0, 3))}, cut ${JSON.stringify(load.cut.slice(0, 3))}`,
      );
    } finally {
      await child.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  },
};
