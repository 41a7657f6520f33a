import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../../helpers/conditions.ts";
import { CREDENTIALS, startObjectServer } from "../../helpers/object-store.ts";
import type { Replica } from "../bench.ts";
import type { Report } from "../graphs/reports.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

const STEPS = 6;
const RUNS_AT_ONCE = 2;
const ROUND_MS = 1_500;
/** In every third round the object store is away. */
const AWAY_EVERY = 3;

const isWhole = ({ text, digest }: Report): boolean =>
  createHash("sha256").update(text).digest("hex") === digest;

/** 31: contents move to the object store after their checkpoints, so either may be lost between the two. */
export const movedValues = ({ rounds }: { rounds: number }): Scenario => ({
  number: 31,
  title: "servers are killed and the object store goes away while large values move",
  criterion:
    "every run ends with success; every stored value is whole; each object is used or noted as unused",
  scaled: `${rounds} kills`,
  async run({ bench }) {
    const objects = await startObjectServer();
    try {
      const { url, endpoint } = objects.setup;
      const environment = {
        ...CREDENTIALS,
        OBJECT_STORE_URL: url,
        OBJECT_STORE_ENDPOINT: endpoint,
        MAX_ATTEMPTS: "10",
      };
      const start = (): Promise<Replica> => bench.start({ environment });
      const replicas = await Promise.all([start(), start()]);
      const threads: string[] = [];
      for (let round = 0; round < rounds; round += 1) {
        if (round % AWAY_EVERY === 1) await objects.stop();
        const [victim, other] = replicas as [Replica, Replica];
        for (let count = 0; count < RUNS_AT_ONCE; count += 1) {
          const threadId = await other.api.aThread();
          await other.api.aRun(threadId, { assistant_id: "reports", input: { steps: STEPS } });
          threads.push(threadId);
        }
        await pause(Math.random() * ROUND_MS);
        victim.signal("SIGKILL");
        await objects.start();
        replicas.splice(0, 2, other, await start());
      }
      const lost = await bench.untilAllEnded();
      const doubled = await bench.doubledWinners();
      // What killed servers have claimed is free after ten minutes.
      await bench.query("update threadloom.unused_objects set since = '2020-01-01'");
      const left = () =>
        bench.query(
          "select from threadloom.checkpoint_contents where octet_length(content) >= 32768 limit 1",
        );
      await eventually("all values are moved", async () => (await left()).length === 0);
      const failed = await bench.query(
        "select from threadloom.runs where graph_id = 'reports' and status <> 'success'",
      );

      // It has no state in its memory.
      const reader = await start();
      let damaged = 0;
      for (const threadId of threads) {
        const { values } = await reader.api.state(threadId);
        const reports = values["reports"] as Report[];
        if (reports.length !== STEPS || !reports.every(isWhole)) damaged += 1;
      }
      const known = await bench.query<{ id: string; used: boolean }>(
        `select object_id::text as id, true as used from threadloom.checkpoint_contents where object_id is not null
         union all select object_id::text, false from threadloom.unused_objects`,
      );
      const keys = new Set(await objects.keys());
      const ids = new Set(known.map(({ id }) => id));
      const forgotten = [...keys].filter((key) => !ids.has(key)).length;
      const missing = known.filter(({ id, used }) => used && !keys.has(id)).length;
      return {
        figure: `${rounds} kills; ${threads.length} runs; ${keys.size} objects; lost ${lost}, failed ${failed.length}, doubled ${doubled}, damaged ${damaged}, objects missing ${missing}, forgotten ${forgotten}`,
        complaints: complaintsWhere({
          "a run was lost": lost > 0,
          "a run failed": failed.length > 0,
          "two attempts wrote": doubled > 0,
          "a stored value is damaged": damaged > 0,
          "an object is missing": missing > 0,
          "an object would stay for ever": forgotten > 0,
        }),
      };
    } finally {
      await objects.close();
    }
  },
});
