import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../../helpers/conditions.ts";
import { startTcpProxy } from "../../helpers/tcp-proxy.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { aLedgerRun, faultsOf, seconds, type Bench, type LedgerRun, type Replica } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

/** Each client waits for one run after the other. Counts the answers until it is stopped. */
const startLoad = ({ api }: Replica, clients: number) => {
  let stopped = false;
  let done = 0;
  const refused = new Map<number, number>();
  const wrong: string[] = [];
  const work = async (): Promise<void> => {
    while (!stopped) {
      const answer = await api
        .post<{ __error__?: unknown }>("/runs/wait", { assistant_id: "two-step", input: { messages: [] } })
        .catch((error: unknown) => ({ status: 0, body: undefined, text: String(error) }));
      if (answer.status === 200 && answer.body?.__error__ === undefined) done += 1;
      else if (answer.status === 200 || answer.status === 0) wrong.push(answer.text);
      else refused.set(answer.status, (refused.get(answer.status) ?? 0) + 1);
      if (answer.status !== 200) await pause(20);
    }
  };
  const workers = Array.from({ length: clients }, work);
  return {
    get done() {
      return done;
    },
    refused,
    wrong,
    async stop(): Promise<void> {
      stopped = true;
      await Promise.all(workers);
    },
  };
};

const TERMINATE_ONE = `select pg_terminate_backend(pid) from (
  select pid from pg_stat_activity
  where datname = current_database() and application_name like 'threadloom%'
  order by (state = 'active') desc, random() limit 1) as one`;

export interface TerminationOptions {
  /** The duration of the measurements before and after; left out: no measurement, only whether runs are answered. */
  calmMs?: number;
  /** The duration of the terminations. */
  stormMs: number;
}

/** 4: backends that are terminated continuously, active ones first. */
export const terminatedBackends = ({ calmMs, stormMs }: TerminationOptions): Scenario => ({
  number: 4,
  title: "backends terminated, 10 per second",
  criterion: "the process lives; no acknowledged run is lost or fails; throughput afterwards as before",
  scaled: `for ${seconds(stormMs)} instead of 30 s`,
  async run({ bench }) {
    const server = await bench.start();
    const load = startLoad(server, 4);
    await pause((calmMs ?? 0) / 2); // the first requests are slower than the rest
    const measure = async (): Promise<number> => {
      const [before, startedAt] = [load.done, performance.now()];
      if (calmMs === undefined) {
        await eventually("runs are answered", () => load.done > before);
        return Number.NaN;
      }
      await pause(calmMs);
      return ((load.done - before) / (performance.now() - startedAt)) * 1000;
    };
    const before = await measure();
    const runs: LedgerRun[] = [];
    for (let count = 0; count < 4; count += 1) {
      runs.push(await aLedgerRun(server, { steps: Math.ceil(stormMs / 300), milliseconds: 250 }));
    }
    let terminated = 0;
    for (const end = Date.now() + stormMs; Date.now() < end; await pause(100)) {
      terminated += (await bench.query(TERMINATE_ONE)).length;
    }
    await pause(1_000);
    const after = await measure();
    await load.stop();
    const lost = await bench.untilAllEnded();
    const doubled = await bench.doubledWinners();
    const faults = await faultsOf(server.api, runs);
    const others = [...load.refused].map(([status, count]) => `${count} x ${status}`).join(", ") || "none";
    return {
      figure: `${terminated} terminated; ${before.toFixed(0)} runs/s before, ${after.toFixed(0)} after; refused: ${others}; lost ${lost}; doubled ${doubled}`,
      complaints: [
        ...faults,
        ...load.wrong.slice(0, 3).map((text) => `a waiting client got ${text}`),
        ...complaintsWhere({
          "the process died": !server.isAlive(),
          "a run was lost": lost > 0,
          "two attempts wrote": doubled > 0,
          "other refusals than 503": [...load.refused.keys()].some((status) => status !== 503),
          "throughput did not come back": after < before * 0.6,
        }),
      ],
    };
  },
});

const AWAY_MS = 5_000;
const READY_AGAIN_MS = 5_000;

/** 5: Postgres stops like in a power failure, and returns. */
export const stoppedDatabase = (): Scenario => ({
  number: 5,
  title: "Postgres stopped hard for 5 s",
  criterion: "503 with Retry-After meanwhile; ready <= 5 s after it is back; acknowledged runs all there",
  async run({ bench, database }) {
    if (database === undefined) throw new Error("This needs a Postgres that may be stopped.");
    const replicas = await Promise.all([bench.start(), bench.start()]);
    const [server] = replicas as [Replica, Replica];
    const runs: LedgerRun[] = [];
    for (const replica of [...replicas, ...replicas]) {
      runs.push(await aLedgerRun(replica, { steps: 15, milliseconds: 700, durability: "async" }));
    }
    // Acknowledged a moment before the stop: they wait in the queue, or have hardly begun.
    await pause(1_000);
    const late = await Promise.all(
      Array.from({ length: 10 }, () => aLedgerRun(server, { steps: 2, milliseconds: 100 })),
    );
    await database.stopHard();
    const answers = new Map<string, number>();
    for (const end = Date.now() + AWAY_MS; Date.now() < end; await pause(250)) {
      const answer = await server.api.post("/threads", {}).catch(() => undefined);
      const what =
        answer === undefined
          ? "no answer"
          : `${answer.status}${answer.headers.get("retry-after") === null ? "" : " with Retry-After"}`;
      answers.set(what, (answers.get(what) ?? 0) + 1);
    }
    await database.start();
    const backAt = Date.now();
    let readyMs = Number.NaN;
    for (const end = backAt + 30_000; Date.now() < end; await pause(50)) {
      const answer = await server.api.post("/threads", {}).catch(() => undefined);
      if (answer?.status !== 200) continue;
      readyMs = Date.now() - backAt;
      break;
    }
    const lost = await bench.untilAllEnded();
    const doubled = await bench.doubledWinners();
    const faults = await faultsOf(server.api, [...runs, ...late]);
    const attempts = await bench.query<{ most: number }>("select max(attempt) as most from threadloom.runs");
    return {
      figure: `meanwhile ${[...answers].map(([what, count]) => `${count} x ${what}`).join(", ")}; ready after ${readyMs} ms; ${runs.length + late.length} runs, lost ${lost}; doubled ${doubled}; at most ${attempts[0]?.most} attempts`,
      complaints: [
        ...faults,
        ...complaintsWhere({
          "a run was lost": lost > 0,
          "two attempts wrote": doubled > 0,
          "an answer was not 503 with Retry-After": [...answers.keys()].join() !== "503 with Retry-After",
          "it was not ready in time": !(readyMs <= READY_AGAIN_MS),
          "a process died": replicas.some((replica) => !replica.isAlive()),
        }),
      ],
    };
  },
});

const attemptsOf = async (bench: Bench, runId: string): Promise<number> =>
  (
    await bench.query<{ attempt: number }>("select attempt from threadloom.runs where run_id = $1", [runId])
  )[0]?.attempt ?? -1;

/** 6: dead connections that do not report it. */
export const halfOpenConnections = (): Scenario => ({
  number: 6,
  title: "LISTEN and heartbeat connections half open (proxy swallows them)",
  criterion: "events still arrive on another replica; no lease is lost",
  async run({ bench }) {
    const proxy = await startTcpProxy(bench.connectionString);
    try {
      const [direct, behind] = await Promise.all([
        bench.start(),
        bench.start({ connectionString: proxy.connectionString }),
      ]);
      const own = await aLedgerRun(behind, { steps: 20, milliseconds: 900 });
      const doomed = ({ application }: { application: string }): boolean =>
        /listener|heartbeat/.test(application);
      await eventually("both connections", () => proxy.connections.filter(doomed).length === 2);
      const swallowed = proxy.swallow(doomed);
      const far = await aLedgerRun(direct, { steps: 12, milliseconds: 700, stream_mode: ["custom"] });
      const stream = await openStream(`${behind.url}/threads/${far.threadId}/runs/${far.runId}/stream`, {
        headers: { "last-event-id": "-1" },
      });
      let longestMs = 0;
      let events = 0;
      for (let lastAt = Date.now(); ;) {
        const event = await stream.next();
        if (event === undefined) break;
        events += 1;
        longestMs = Math.max(longestMs, Date.now() - lastAt);
        lastAt = Date.now();
      }
      const lost = await bench.untilAllEnded();
      const faults = await faultsOf(direct.api, [far, own]);
      const attempts = await attemptsOf(bench, own.runId);
      const listeners = await bench.query(
        "select 1 from pg_stat_activity where datname = current_database() and application_name = 'threadloom listener'",
      );
      return {
        figure: `${swallowed} connections swallowed; ${events} events, longest gap ${seconds(longestMs)} (a step takes 0.7 s); attempts of a run of 18 s: ${attempts}; lost ${lost}`,
        complaints: [
          ...faults,
          ...complaintsWhere({
            "not both were swallowed": swallowed !== 2,
            "events are missing": events < 11,
            "an event took too long": longestMs > 2_500,
            "a lease was lost": attempts !== 1,
            "a run was lost": lost > 0,
            "the listener did not come back": listeners.length < 2,
          }),
        ],
      };
    } finally {
      await proxy.close();
    }
  },
});

/** 7: a distant database. */
export const slowDatabase = (): Scenario => ({
  number: 7,
  title: "database latency of 100 ms (round trip)",
  criterion: "no lease is lost: every run ends in its first attempt",
  async run({ bench }) {
    const proxy = await startTcpProxy(bench.connectionString);
    try {
      const [server] = await Promise.all([
        bench.start({ connectionString: proxy.connectionString }),
        bench.start(), // another server that could take over
      ]);
      proxy.delay(50);
      const runs = await Promise.all(
        Array.from({ length: 10 }, () => aLedgerRun(server, { steps: 12, milliseconds: 1_000 })),
      );
      const lost = await bench.untilAllEnded();
      const faults = await faultsOf(server.api, runs);
      const [most] = await bench.query<{ attempts: number }>(
        "select max(attempt) as attempts from threadloom.runs",
      );
      return {
        figure: `${runs.length} runs of 12 s: ${most?.attempts} attempt at most; lost ${lost}`,
        complaints: [
          ...faults,
          ...complaintsWhere({ "a lease was lost": most?.attempts !== 1, "a run was lost": lost > 0 }),
        ],
      };
    } finally {
      await proxy.close();
    }
  },
});
