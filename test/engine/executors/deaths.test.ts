import { expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { isAlive } from "../../helpers/is-alive.ts";
import { HOSTILE_GRAPHS } from "./graphs/config-file.ts";
import { onServer } from "../../helpers/servers.ts";

/** Graphs that harm their process, and the runs that are affected. A lease is longer than each test may take. */

const WITHIN_MS = 120_000;

let server: TestServer;
let api: Api;
onServer(
  {
    graphConfigFile: HOSTILE_GRAPHS,
    graphProcesses: 2,
    graphProcessHeapMegabytes: 96,
    leaseSeconds: 300,
    blockedLoopSeconds: 5,
  },
  (opened) => ({ server, api } = opened),
);

interface HostileInput {
  harm?: string;
  attempts?: number;
  steps?: number;
}
const hostile = async (input: HostileInput) => {
  const threadId = await api.aThread();
  // A process that is harmed before it has stored its report never reports.
  const run = await api.aRun(threadId, { assistant_id: "hostile", input, durability: "sync" });
  return { threadId, runId: run.run_id };
};
/** The process that executes a run, once it has reported its id. */
const processOf = (threadId: string): Promise<number> =>
  eventually(
    "the run has reported its process",
    async () => {
      const { values } = await api.state(threadId);
      return values["pid"] as number | undefined;
    },
    WITHIN_MS,
  );

/** Waits for the end of a run; a process needs seconds to start on a busy machine. */
const endOf = (threadId: string, runId: string) =>
  eventually(
    `run ${runId} has ended`,
    async () => {
      const run = await api.run(threadId, runId);
      return ["pending", "running"].includes(run.status) ? undefined : run;
    },
    WITHIN_MS,
  );

test("runs that kill their process end as errors after their attempts, and the runs beside them succeed", async () => {
  const neighbours = await Promise.all(Array.from({ length: 4 }, () => hostile({ steps: 15 })));
  const harms = ["exit", "throw", "kill", "memory", "loop"];
  const bad = await Promise.all(harms.map((harm) => hostile({ harm, steps: 2 })));
  for (const { threadId, runId } of bad) {
    expect(await endOf(threadId, runId)).toMatchObject({ status: "error" });
    const { error } = await api.thread(threadId);
    expect(error?.error).toBe("MaxAttemptsError");
    expect(error?.message).toMatch(
      /^The run was given up after 3 attempts: each lost its process before it ended\. The last one .+\.$/,
    );
  }
  for (const { threadId, runId } of neighbours) {
    expect(await endOf(threadId, runId)).toMatchObject({ status: "success" });
    expect((await api.state(threadId)).values).toMatchObject({ done: 15 });
  }
});

test("a run whose output is too large fails with a clear error, and its process continues", async () => {
  const other = await startTestServer({
    graphConfigFile: HOSTILE_GRAPHS,
    graphProcesses: 1,
    graphProcessHeapMegabytes: 96,
    stateValueCharactersAtMost: 12_000_000,
    blockedLoopSeconds: 300,
  });
  try {
    const { body } = await apiOf(other).post("/runs/wait", {
      assistant_id: "numbers",
      input: { count: 4_000_000 },
    });
    expect(body).toMatchObject({ __error__: { error: "ValueTooLargeError" } });
    expect(await (await fetch(`${other.url}/metrics`)).text()).not.toMatch(/process_deaths_total.* [1-9]/);
  } finally {
    await other.close();
  }
});

test("a run that lost its process continues from its last checkpoint in another process", async () => {
  const { threadId, runId } = await hostile({ harm: "kill", attempts: 1, steps: 3 });
  expect(await endOf(threadId, runId)).toMatchObject({ status: "success" });
  expect((await api.state(threadId)).values).toMatchObject({ done: 3 });
});

test("a run that lost its process asks its second question again, instead of taking the answer to the first one", async () => {
  const threadId = await api.aThread();
  const asked = await api.aFinishedRun(threadId, { assistant_id: "asking", input: {} });
  type Question = { question: string; pid?: number };
  const resume = Object.fromEntries(
    (asked.__interrupt__ ?? []).map(({ id, value }) => [id, `to ${(value as Question).question}`]),
  );
  const run = await api.aRun(threadId, { assistant_id: "asking", command: { resume } });
  const secondOf = async (): Promise<Question | undefined> => {
    const { tasks } = await api.state(threadId);
    const all = tasks.flatMap(({ interrupts }) => interrupts).map(({ value }) => value as Question);
    return all.find(({ question }) => question === "second");
  };
  const { pid } = await eventually("the second question is stored", secondOf, WITHIN_MS);
  process.kill(pid!, "SIGKILL");
  expect(await endOf(threadId, run.run_id)).toMatchObject({ status: "success" });
  const { status, interrupts } = await api.thread(threadId);
  expect([status, Object.values(interrupts).flat()]).toMatchObject([
    "interrupted",
    [{ value: { question: "second" } }],
  ]);
  const last = await api.aFinishedRun(threadId, {
    assistant_id: "asking",
    command: { resume: "to second" },
  });
  expect(last["answers"]).toEqual(["to busy", "to first", "to second"]);
});

test("a run that loops forever can be cancelled: its process is killed, and the run is not retried", async () => {
  const { threadId, runId } = await hostile({ harm: "loop", steps: 1 });
  await processOf(threadId);
  expect((await api.cancel(threadId, runId)).status).toBe(204);
  expect(await api.run(threadId, runId)).toMatchObject({ status: "interrupted" });
});

test("a run that ignores its signal can be cancelled", async () => {
  const { threadId, runId } = await hostile({ harm: "deaf", steps: 1 });
  await processOf(threadId);
  expect((await api.cancel(threadId, runId)).status).toBe(204);
  expect(await api.run(threadId, runId)).toMatchObject({ status: "interrupted" });
});

test("the server answers while a graph loops", async () => {
  const { threadId, runId } = await hostile({ harm: "loop", steps: 1 });
  await processOf(threadId);
  for (let poll = 0; poll < 5; poll += 1) expect((await api.get("/ok")).status).toBe(200);
  expect((await api.cancel(threadId, runId)).status).toBe(204);
});

test("no process remains after the server has closed, even if a graph loops", async () => {
  const other = await startTestServer({
    graphConfigFile: HOSTILE_GRAPHS,
    graphProcesses: 1,
    shutdownGraceSeconds: 0,
    connectionString: server.connectionString,
  });
  const before = api;
  api = apiOf(other);
  try {
    const { threadId, runId } = await hostile({ harm: "loop", attempts: 1, steps: 1 });
    const pid = await processOf(threadId);
    await other.close();
    expect(isAlive(pid)).toBe(false);
    // The run was handed back, not lost.
    api = before;
    expect(await endOf(threadId, runId)).toMatchObject({ status: "success" });
  } finally {
    api = before;
  }
});

test("a process is replaced after a number of runs, without effect on runs", async () => {
  const other = await startTestServer({
    graphConfigFile: HOSTILE_GRAPHS,
    graphProcesses: 1,
    graphProcessRuns: 3,
  });
  try {
    const pids = new Set<number>();
    await eventually(
      "runs were executed in three processes",
      async () => {
        const { body } = await apiOf(other).post<{ pid: number }>("/runs/wait", {
          assistant_id: "hostile",
          input: {},
        });
        expect(body).toMatchObject({ done: 0, pid: expect.any(Number) });
        pids.add(body.pid);
        return pids.size >= 3;
      },
      WITHIN_MS,
    );
    const [first] = pids;
    await eventually("the first has ended", () => !isAlive(first!), WITHIN_MS);
  } finally {
    await other.close();
  }
});
