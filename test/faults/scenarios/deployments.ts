import type { Metrics } from "../../../src/api/status/schemas.ts";
import { eventually } from "../../helpers/conditions.ts";
import { aLedgerRun, faultsOf, type LedgerRun, type Replica } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

/** Few slots, so that runs wait while the versions change. */
const SLOTS = { N_JOBS_PER_WORKER: "2" };

/** 16: a deployment that adds a graph and renames one, which removes the old name. */
export const changedGraphs = (): Scenario => ({
  number: 16,
  title: "rolling deployment that adds, renames and removes graphs",
  criterion:
    "each run is executed by a process that hosts its graph, or waits and is shown; none fails or is lost",
  async run({ bench }) {
    const start = (version: "former" | "next"): Promise<Replica> =>
      bench.start({ version: `langgraph-${version}`, environment: SLOTS });
    const stop = async (replica: Replica): Promise<void> => {
      replica.signal("SIGTERM");
      await replica.process.exit();
    };
    const runs: LedgerRun[] = [];
    const createAt = async (replica: Replica, graph: string, count: number): Promise<void> => {
      for (let created = 0; created < count; created += 1) {
        runs.push(await aLedgerRun(replica, { assistant_id: graph, steps: 3, milliseconds: 150 }));
      }
    };
    const unhosted = async ({ api }: Replica): Promise<number | undefined> =>
      (await api.get<Metrics>("/metrics?format=json")).body.queue?.num_unhosted;

    const former = await Promise.all([start("former"), start("former")]);
    const [first, second] = former as [Replica, Replica];
    await createAt(first, "former-ledger", 6);
    await createAt(first, "ledger", 2);
    const third = await start("next");
    await createAt(third, "next-ledger", 3);
    // A process creates runs of graphs that it does not host, because all processes share their assistants.
    await createAt(second, "next-ledger", 3);
    await createAt(third, "former-ledger", 3);
    await stop(first);
    const fourth = await start("next");
    await createAt(fourth, "former-ledger", 4);
    // It is due when no process is left that hosts its graph.
    runs.push(
      await aLedgerRun(fourth, {
        ...{ assistant_id: "former-ledger", steps: 3, milliseconds: 150 },
        after_seconds: 3_600,
      }),
    );
    await stop(second);
    await bench.query("update threadloom.runs set available_at = now() where available_at > now()");
    const left = await eventually("the other runs have ended", async () => {
      const [row] = await bench.query<{ left: number; others: number }>(
        `select count(*) filter (where graph_id = 'former-ledger')::int as left,
           count(*) filter (where graph_id <> 'former-ledger')::int as others
         from threadloom.runs where status in ('pending', 'running')`,
      );
      return row?.others === 0 ? row.left : undefined;
    });
    const shown = await unhosted(fourth);
    const back = await start("former");
    const lost = await bench.untilAllEnded();
    const doubled = await bench.doubledWinners();
    return {
      figure: `${runs.length} runs; ${left} waited for their graph, ${shown} shown; lost ${lost}; doubled ${doubled}`,
      complaints: [
        ...(await faultsOf(back.api, runs)),
        ...complaintsWhere({
          "no run had to wait for its graph": left === 0,
          "what waited for its graph was not shown": shown !== left,
          "a run was lost": lost > 0,
          "two attempts wrote": doubled > 0,
        }),
      ],
    };
  },
});
