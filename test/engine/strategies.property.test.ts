import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { MultitaskStrategy } from "../../src/platform/database/tables.ts";
import type { RunRecord } from "../../src/api/runs/schemas.ts";
import { apiOf, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";
import { isAtGate, openGate } from "../fixtures/gates.ts";

let server: TestServer;
let replica: TestServer;
let apis: Api[];
beforeAll(async () => {
  const config = { graphConfigFile: ENGINE_GRAPHS, jobsPerWorker: 40 };
  server = await startTestServer(config);
  replica = await startTestServer({ ...config, connectionString: server.connectionString });
  apis = [apiOf(server), apiOf(replica)];
});
afterAll(async () => {
  await replica.close();
  await server.close();
});

type Status = "pending" | "running" | "success" | "interrupted" | "gone";
interface ModelRun {
  label: string;
  status: Status;
}

/** The per-thread rule of the hosted service, without a database. */
class Model {
  readonly runs: ModelRun[] = [];
  readonly done: string[] = [];

  get running(): ModelRun | undefined {
    return this.runs.find(({ status }) => status === "running");
  }
  get unfinished(): ModelRun[] {
    return this.runs.filter(({ status }) => status === "pending" || status === "running");
  }
  create(strategy: MultitaskStrategy, label: string): boolean {
    if (strategy === "reject" && this.unfinished.length > 0) return false;
    if (strategy === "interrupt") for (const run of this.unfinished) run.status = "interrupted";
    if (strategy === "rollback") for (const run of this.unfinished) run.status = "gone";
    this.runs.push({ label, status: "pending" });
    this.promote();
    return true;
  }
  finish(): void {
    const { running } = this;
    if (running === undefined) return;
    running.status = "success";
    this.done.push(running.label);
    this.promote();
  }
  cancel(run: ModelRun, action: "interrupt" | "rollback"): void {
    if (!this.unfinished.includes(run)) return;
    run.status = action === "interrupt" ? "interrupted" : "gone";
    this.promote();
  }
  private promote(): void {
    const next = this.runs.find(({ status }) => status === "pending");
    if (this.running === undefined && next !== undefined) next.status = "running";
  }
}

const strategy = fc.constantFrom<MultitaskStrategy>("reject", "enqueue", "interrupt", "rollback");
const command = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("create" as const), strategy, on: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("finish" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("cancel" as const),
      run: fc.nat(9),
      action: fc.constantFrom("interrupt" as const, "rollback" as const),
      on: fc.nat(1),
    }),
  },
);

/** Statuses of a thread's runs in the database, `gone` for a missing row. */
const statusesOf = async (threadId: string, runIds: readonly string[]): Promise<Status[]> => {
  const rows = await query<{ run_id: string; status: Status }>(
    server,
    "select run_id, status from threadloom.runs where thread_id = $1",
    [threadId],
  );
  const found = new Map(rows.map((row) => [row.run_id, row.status]));
  return runIds.map((runId) => found.get(runId) ?? "gone");
};

const NUM_RUNS = 12;
let labels = 0;

describe("the strategies, on two servers", () => {
  test("behave like the model, one command after the other", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 3, maxLength: 9 }), async (commands) => {
        const model = new Model();
        const [api] = apis as [Api, Api];
        const threadId = await api.aThread();
        const runIds: string[] = [];
        for (const step of commands) {
          if (step.kind === "create") {
            const label = `model-${(labels += 1)}`;
            const answer = await (apis[step.on] as Api).post<RunRecord>(`/threads/${threadId}/runs`, {
              assistant_id: "gate",
              input: { label },
              multitask_strategy: step.strategy,
            });
            expect(answer.status).toBe(model.create(step.strategy, label) ? 200 : 409);
            if (answer.status === 200) runIds.push(answer.body.run_id);
          } else if (step.kind === "finish") {
            if (model.running === undefined) continue;
            const { label } = model.running;
            openGate(label);
            model.finish();
          } else {
            const target = step.run % Math.max(1, model.runs.length);
            const run = model.runs[target];
            if (run === undefined) continue;
            const isGone = run.status === "gone";
            const answer = await (apis[step.on] as Api).cancel(
              threadId,
              runIds[target] ?? "",
              `wait=1&action=${step.action}`,
            );
            expect(answer.status).toBe(isGone ? 404 : 204);
            model.cancel(run, step.action);
          }
          const expected = model.runs.map(({ status }) => status);
          await eventually(`${JSON.stringify(expected)} after ${JSON.stringify(step)}`, async () => {
            const actual = await statusesOf(threadId, runIds);
            if (JSON.stringify(actual) !== JSON.stringify(expected)) return false;
            return model.running === undefined || isAtGate(model.running.label);
          });
          const thread = await api.thread(threadId);
          expect(thread.status === "busy").toBe(model.unfinished.length > 0);
        }
        while (model.running !== undefined) {
          const { label } = model.running;
          await eventually(`${label} is at its gate`, () => isAtGate(label));
          openGate(label);
          model.finish();
        }
        await api.untilQuiet(threadId);
        expect((await api.state(threadId)).values["done"] ?? []).toEqual(model.done);
      }),
      { numRuns: NUM_RUNS, endOnFailure: true },
    );
  });

  test("keep the thread consistent under concurrent commands", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 6, maxLength: 14 }), async (commands) => {
        const [api] = apis as [Api, Api];
        const threadId = await api.aThread();
        const mine = `race-${(labels += 1)}-`;
        const created: RunRecord[] = [];
        const labelOf = (index: number) => `${mine}${index}`;
        const opening = setInterval(() => commands.forEach((_, index) => openGate(labelOf(index))), 5);
        try {
          const answers = await Promise.all(
            commands.map(async (step, index) => {
              if (step.kind === "finish") return 200;
              if (step.kind === "create") {
                const { status, body } = await (apis[step.on] as Api).post<RunRecord>(
                  `/threads/${threadId}/runs`,
                  {
                    assistant_id: "gate",
                    input: { label: labelOf(index) },
                    multitask_strategy: step.strategy,
                  },
                );
                if (status === 200) created.push(body);
                return status;
              }
              await eventually("there is a run", () => created.length > 0, 200).catch(() => undefined);
              const run = created[step.run % Math.max(1, created.length)];
              if (run === undefined) return 204;
              const query = `wait=1&action=${step.action}`;
              return (await (apis[step.on] as Api).cancel(threadId, run.run_id, query)).status;
            }),
          );
          for (const status of answers) expect([200, 204, 404, 409]).toContain(status);
          await api.untilQuiet(threadId);
        } finally {
          clearInterval(opening);
        }
        const statuses = await statusesOf(
          threadId,
          created.map((run) => run.run_id),
        );
        const stored = await query(server, "select 1 from threadloom.runs where thread_id = $1", [threadId]);
        expect(stored).toHaveLength(statuses.filter((status) => status !== "gone").length);
        for (const status of statuses) expect(["success", "interrupted", "gone"]).toContain(status);
        const [thread] = await query<{ unfinished_runs: number }>(
          server,
          "select unfinished_runs from threadloom.threads where thread_id = $1",
          [threadId],
        );
        expect(thread?.unfinished_runs).toBe(0);
        const done = ((await api.state(threadId)).values["done"] ?? []) as string[];
        created.forEach(({ kwargs }, index) => {
          const { label } = kwargs["input"] as { label: string };
          const times = done.filter((noted) => noted === label).length;
          if (statuses[index] === "success") expect(times).toBe(1);
          else if (statuses[index] === "gone") expect(times).toBe(0);
          // A run may note its label just before it is interrupted, and then the label stays.
          else expect(times).toBeLessThanOrEqual(1);
        });
      }),
      { numRuns: NUM_RUNS, endOnFailure: true },
    );
  });
});
