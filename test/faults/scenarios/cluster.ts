import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../../helpers/free-port.ts";
import { aLedgerRun, faultsOf, seconds, type Bench, type LedgerRun, type Replica } from "../bench.ts";
import { complaintsWhere, type Scenario, type ScenarioParts } from "../scenario.ts";
import type { FaultNode } from "../test-cluster.ts";

const NO_CLUSTER = { figure: "", complaints: [], skipped: "TEST_CITUS_NODES names no cluster" };
const STEPS = 8;
const STEP_MS = 300;

/** Creates runs at two servers until it is ended. A refused request is counted. */
export const startRuns = async (bench: Bench) => {
  const replicas = (await Promise.all([bench.start(), bench.start()])) as [Replica, Replica];
  const runs: LedgerRun[] = [];
  let isOver = false;
  let refused = 0;
  const others = new Set<string>();
  const create = async (replica: Replica): Promise<void> => {
    while (!isOver) {
      try {
        runs.push(await aLedgerRun(replica, { steps: STEPS, milliseconds: STEP_MS, durability: "async" }));
      } catch (error) {
        refused += 1;
        const text = String(error);
        if (!text.includes("503")) others.add(text.slice(0, 200));
      }
      await pause(200);
    }
  };
  const creating = replicas.map(create);
  return {
    runs,
    /** After the last fault: every acknowledged run has to end as success, with its steps once each. */
    async end() {
      isOver = true;
      await Promise.all(creating);
      const lost = await bench.untilAllEnded();
      const doubled = await bench.doubledWinners();
      const faults = await faultsOf(replicas[0].api, runs);
      const [{ attempts } = { attempts: 0 }] = await bench.query<{ attempts: number }>(
        "select max(attempt) as attempts from threadloom.runs",
      );
      return {
        figure: `${runs.length} runs, ${refused} requests refused; at most ${attempts} attempts; lost ${lost}; doubled ${doubled}`,
        complaints: [
          ...faults,
          ...[...others].map((text) => `a request was refused with ${text}`),
          ...complaintsWhere({
            "a run was lost": lost > 0,
            "two attempts wrote": doubled > 0,
            "a process died": replicas.some((replica) => !replica.isAlive()),
          }),
        ],
      };
    },
  };
};

const CALM_MS = 3_000;
const AWAY_MS = 2_000;

const stopping = async (
  { bench, database }: ScenarioParts,
  nodes: (all: readonly FaultNode[]) => readonly FaultNode[],
  awayMs = AWAY_MS,
) => {
  if (database === undefined || database.nodes.length === 0) return NO_CLUSTER;
  const load = await startRuns(bench);
  const created: number[] = [];
  for (const node of nodes(database.nodes)) {
    await pause(CALM_MS);
    await node.stopHard();
    const before = load.runs.length;
    await pause(awayMs);
    created.push(load.runs.length - before);
    await node.start();
  }
  await pause(CALM_MS);
  const { figure, complaints } = await load.end();
  return { figure: `runs created meanwhile: ${created.join(", ")}; ${figure}`, complaints };
};

/** 27: nodes that have parts of the threads. */
export const stoppedNode = ({ stops }: { stops: number }): Scenario => ({
  number: 27,
  title: `Citus: a worker node stopped hard for ${seconds(AWAY_MS)}, ${stops} times`,
  criterion: "no acknowledged run is lost or fails; the servers go on",
  run: (parts) =>
    stopping(parts, ([, ...workers]) =>
      Array.from({ length: stops }, (_, turn) => workers[turn % workers.length]!),
    ),
});

/** 28: the node that all searches and common tables need. */
export const stoppedCoordinator = (): Scenario => ({
  number: 28,
  title: `Citus: the coordinator stopped hard for ${seconds(AWAY_MS)}, 2 times`,
  criterion: "no acknowledged run is lost or fails; the servers go on",
  run: (parts) => stopping(parts, ([coordinator]) => [coordinator!, coordinator!]),
});

const LONG_AWAY_MS = 25_000;

/** 30: the leases of the node's runs end meanwhile, those of other nodes must not. */
export const nodeAwayForLong = (): Scenario => ({
  number: 30,
  title: `Citus: a worker node stopped hard for ${seconds(LONG_AWAY_MS)}, longer than a lease`,
  criterion: "no acknowledged run is lost or fails; the servers go on",
  run: (parts) => stopping(parts, ([, worker]) => [worker!], LONG_AWAY_MS),
});

/** 34: connections stay open, and nothing is answered. */
export const silentNode = (): Scenario => ({
  number: 34,
  title: `Citus: a worker node that answers nothing for ${seconds(LONG_AWAY_MS)}, longer than a lease`,
  criterion: "no acknowledged run is lost or fails; the servers go on",
  async run({ bench, database }) {
    const node = database?.nodes[1];
    if (node === undefined) return NO_CLUSTER;
    const load = await startRuns(bench);
    await pause(CALM_MS);
    const before = load.runs.length;
    const wake = await node.hang();
    try {
      await pause(LONG_AWAY_MS);
    } finally {
      wake();
    }
    const created = load.runs.length - before;
    await pause(CALM_MS);
    const { figure, complaints } = await load.end();
    return {
      figure: `runs created meanwhile: ${created}; ${figure}`,
      complaints: [...complaints, ...complaintsWhere({ "the servers did not go on": created === 0 })],
    };
  },
});

const UPDATE_NODE = `select citus_update_node(nodeid, nodename, $2::int) from pg_dist_node where nodeport = $1::int`;

/** 33: as after the fail-over of a node. Then it goes back to its old address. */
export const replacedNode = (): Scenario => ({
  number: 33,
  title: "Citus: a worker node stopped hard, then at another address (citus_update_node), 2 times",
  criterion: "no acknowledged run is lost or fails; the servers go on",
  async run({ bench, database }) {
    const node = database?.nodes[1];
    if (node === undefined) return NO_CLUSTER;
    const load = await startRuns(bench);
    const configured = Number(new URL(node.url).port);
    const another = await freePort();
    for (const [from, to] of [
      [configured, another],
      [another, configured],
    ] as const) {
      await pause(CALM_MS);
      await node.stopHard();
      await node.start(to);
      await bench.query(UPDATE_NODE, [from, to]);
    }
    await pause(CALM_MS);
    return await load.end();
  },
});

const SHARDS = `select shardid, nodename, nodeport from pg_dist_shard_placement
  join pg_dist_shard using (shardid) where logicalrelid = 'threadloom.threads'::regclass order by shardid`;

interface Shard {
  shardid: string;
  nodename: string;
  nodeport: number;
}

/** 29: shards that change their node. */
export const movedShards = ({ moves }: { moves: number }): Scenario => ({
  number: 29,
  title: `Citus: ${moves} moves of shards`,
  criterion: "no acknowledged run is lost or fails; no request is refused",
  async run({ bench, database }) {
    if (database === undefined || database.nodes.length === 0) return NO_CLUSTER;
    const load = await startRuns(bench);
    await pause(CALM_MS);
    const workers = await bench.query<{ nodename: string; nodeport: number }>(
      "select nodename, nodeport from pg_dist_node where shouldhaveshards order by nodeport",
    );
    const took: number[] = [];
    for (let turn = 0; turn < moves; turn += 1) {
      const shards = await bench.query<Shard>(SHARDS);
      // The same one three times: its new node has to hold it, too.
      const shard = shards[Math.max(0, turn - 2) % shards.length]!;
      const target = workers.find(({ nodeport }) => nodeport !== shard.nodeport)!;
      const startedAt = performance.now();
      await bench.query("select citus_move_shard_placement($1, $2, $3, $4, $5, 'force_logical')", [
        shard.shardid,
        shard.nodename,
        shard.nodeport,
        target.nodename,
        target.nodeport,
      ]);
      took.push(performance.now() - startedAt);
    }
    await pause(CALM_MS);
    const { figure, complaints } = await load.end();
    return { figure: `moves took ${took.map(seconds).join(", ")}; ${figure}`, complaints };
  },
});
