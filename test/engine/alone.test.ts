import { expect, test } from "vitest";
import { apiOf, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { onServer } from "../helpers/servers.ts";
import { HOSTILE_GRAPHS } from "./executors/graphs/config-file.ts";

/** Runs that have lost their processes. Each needs a process that starts within seconds on a busy machine. */

const WITHIN_MS = 300_000;

let server: TestServer;
let api: Api;
onServer(
  { graphConfigFile: HOSTILE_GRAPHS, sweepSeconds: 0.2, leaseSeconds: 5, heartbeatSeconds: 0.3 },
  (opened) => ({ server, api } = opened),
);

interface Ids {
  threadId: string;
  runId: string;
}
const endOf = (of: Api, { threadId, runId }: Ids): Promise<string> =>
  eventually(
    "the run has ended",
    async () => {
      const { status } = await of.run(threadId, runId);
      return status !== "pending" && status !== "running" && status;
    },
    WITHIN_MS,
  );

/** Runs left by a dead process: their lease has expired, and `lost` earlier attempts ended the same way. */
const abandoned = async (count: number, lost: number, input: object = {}): Promise<Ids[]> => {
  const runs: Ids[] = [];
  for (let index = 0; index < count; index += 1) {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "hostile", input, after_seconds: 600 });
    runs.push({ threadId, runId: run.run_id });
  }
  await query(
    server,
    `update threadloom.runs set status = 'running', attempt = $2 + 1, lost_attempts = $2, available_at = now(),
       worker_id = 'dead0000-0000-4000-8000-000000000000', lease_until = now() - interval '1 second'
     where run_id = any($1::uuid[])`,
    [runs.map((run) => run.runId), lost],
  );
  return runs;
};
const processesOf = async (runs: readonly Ids[]): Promise<unknown[]> => {
  for (const run of runs) expect(await endOf(api, run)).toBe("success");
  return await Promise.all(runs.map(async ({ threadId }) => (await api.state(threadId)).values["pid"]));
};

test("runs that lost one process continue in the server, and one handed back ten times is not given up", async () => {
  const runs = await abandoned(3, 0);
  await query(server, "update threadloom.runs set attempt = 11 where run_id = $1", [runs[0]?.runId]);
  expect(new Set(await processesOf(runs))).toEqual(new Set([process.pid]));
});

test("runs that lost two processes continue in processes of their own, also more than may live at a time", async () => {
  const processes = await processesOf(await abandoned(6, 1, { steps: 5 }));
  expect(new Set(processes).size).toBe(6);
  expect(processes).not.toContain(process.pid);
});

test("a run that ends its own process, too, ends as an error that says how", async () => {
  const [run] = await abandoned(1, 1, { harm: "exit" });
  expect(await endOf(api, run!)).toBe("error");
  expect((await api.thread(run!.threadId)).error?.message).toBe(
    "The run was given up after 3 attempts: each lost its process before it ended. The last one exited with 0.",
  );
});

test("a run that lost its last process ends as error with an explanation", async () => {
  const [run] = await abandoned(1, 2);
  expect(await endOf(api, run!)).toBe("error");
  expect((await api.thread(run!.threadId)).error?.message).toContain("given up after 3 attempts");
});

test.each([1, 2])(
  "with --workers %i, a run that kills its process in each attempt costs none of 20 others its success",
  { timeout: 2 * WITHIN_MS },
  async (graphProcesses) => {
    const other = await startTestServer({
      graphConfigFile: HOSTILE_GRAPHS,
      graphProcesses,
      jobsPerWorker: 30,
      leaseSeconds: 300,
    });
    try {
      const others = apiOf(other);
      const hostile = async (input: object): Promise<Ids> => {
        const threadId = await others.aThread();
        const config = { recursion_limit: 100 };
        const run = await others.aRun(threadId, {
          assistant_id: "hostile",
          input,
          config,
          durability: "sync",
        });
        return { threadId, runId: run.run_id };
      };
      const innocent = await Promise.all(Array.from({ length: 20 }, () => hostile({ steps: 40 })));
      const killer = await hostile({ harm: "kill", steps: 10 });
      expect(await endOf(others, killer)).toBe("error");
      for (const run of innocent) expect(await endOf(others, run)).toBe("success");
    } finally {
      await other.close();
    }
  },
);
