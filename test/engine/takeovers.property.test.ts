import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CancelAction, MultitaskStrategy } from "../../src/platform/database/tables.ts";
import { sqlState, UNIQUE_VIOLATION } from "../../src/platform/domain/errors.ts";
import {
  MAX_ATTEMPTS,
  openSimulation,
  STEPS,
  type SimulatedThread,
  type Simulation,
} from "./simulated-servers.ts";

/**
 * A thread's runs under random orders of requests, crons, cancels, deaths, stops and takeovers, against a model. Many orders:
 * INTERLEAVINGS=1000 npx vitest run test/engine/takeovers.property.test.ts
 */
const INTERLEAVINGS = Number(process.env["INTERLEAVINGS"] ?? 40);
/** Fixed for the usual number, so that the usual test is repeatable. */
const SEED = process.env["INTERLEAVINGS"] === undefined ? 40 : undefined;
const TIME_LIMIT_MS = 900_000;

let simulation: Simulation;
beforeAll(async () => {
  simulation = await openSimulation();
});
afterAll(() => simulation.close());

type Status = "pending" | "running" | "success" | "error" | "interrupted" | "gone";
interface ModelRun {
  runId: string;
  status: Status;
  isDue: boolean;
  attempt: number;
  lost: number;
  cancel: CancelAction | undefined;
  /** Checkpoints, also that of the input. */
  stored: number;
}

const isUnfinished = ({ status }: ModelRun): boolean => status === "pending" || status === "running";

/** The rules of a thread, without a database. The runs are in the order of their creation. */
class Model {
  readonly runs: ModelRun[] = [];

  get running(): ModelRun | undefined {
    return this.runs.find(({ status }) => status === "running");
  }
  get isBusy(): boolean {
    return this.runs.some(isUnfinished);
  }
  /** A run that has begun comes first. */
  get next(): ModelRun | undefined {
    if (this.running !== undefined) return undefined;
    const pending = this.runs.filter(({ status }) => status === "pending");
    return pending.find(({ attempt }) => attempt > 0) ?? pending.find(({ isDue }) => isDue);
  }

  accepts(strategy: MultitaskStrategy): boolean {
    return strategy !== "reject" || !this.isBusy;
  }
  create(runId: string, strategy: MultitaskStrategy, isDue: boolean, startsIfIdle: boolean): void {
    const starts = startsIfIdle && !this.isBusy;
    if (strategy === "interrupt" || strategy === "rollback")
      for (const run of this.runs.filter(isUnfinished)) this.cancel(run, strategy);
    const run: ModelRun = {
      runId,
      status: "pending",
      isDue,
      attempt: 0,
      lost: 0,
      cancel: undefined,
      stored: 0,
    };
    this.runs.push(run);
    if (starts) this.start(run);
  }
  start(run: ModelRun): void {
    run.status = "running";
    run.attempt += 1;
  }
  cancel(run: ModelRun, action: CancelAction): void {
    if (run.status === "pending") run.status = action === "rollback" ? "gone" : "interrupted";
    else if (run.status === "running" && run.cancel !== "rollback") run.cancel = action;
  }
  private stop(run: ModelRun, otherwise: Status): void {
    run.status = run.cancel === undefined ? otherwise : run.cancel === "rollback" ? "gone" : "interrupted";
  }
  work(run: ModelRun): void {
    if (run.cancel === undefined && run.stored <= STEPS) run.stored += 1;
    else this.stop(run, "success");
  }
  lose(run: ModelRun): void {
    run.lost += 1;
    this.stop(run, run.lost < MAX_ATTEMPTS ? "pending" : "error");
  }
  handBack(run: ModelRun): void {
    this.stop(run, "pending");
  }
}

const strategy = fc.oneof(
  { weight: 5, arbitrary: fc.constant<MultitaskStrategy>("enqueue") },
  { weight: 2, arbitrary: fc.constantFrom<MultitaskStrategy>("reject", "interrupt", "rollback") },
);
const action = fc.constantFrom<CancelAction>("interrupt", "rollback");
const of = <Kind extends string, Fields extends object>(
  weight: number,
  kind: Kind,
  fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> } = {} as never,
) => ({
  weight,
  arbitrary: fc.record({ kind: fc.constant(kind), ...fields }) as unknown as fc.Arbitrary<
    { kind: Kind } & Fields
  >,
});

const command = fc.oneof(
  of<"create", { strategy: MultitaskStrategy; isDelayed: boolean; slot: boolean }>(4, "create", {
    strategy,
    isDelayed: fc.boolean(),
    slot: fc.boolean(),
  }),
  of<"schedule", { strategy: MultitaskStrategy }>(1, "schedule", { strategy }),
  of<"come due", { run: number }>(6, "come due", { run: fc.nat(9) }),
  of<"cancel", { run: number; action: CancelAction }>(1, "cancel", { run: fc.nat(9), action }),
  of<"claim", { isCounting: boolean }>(6, "claim", { isCounting: fc.boolean() }),
  of<"work", { dies: boolean }>(5, "work", { dies: fc.boolean() }),
  of<"lose", { what: "server" | "graph process" }>(5, "lose", {
    what: fc.constantFrom("server" as const, "graph process" as const),
  }),
  of(3, "hand back"),
  of(1, "write late"),
  of(1, "sweep"),
);
type Command = typeof command extends fc.Arbitrary<infer Value> ? Value : never;

/** Ends all runs of the thread; false if that takes too long. */
const drain = async (thread: SimulatedThread): Promise<boolean> => {
  for (let turn = 0; turn < 400; turn += 1) {
    const unfinished = (await thread.rows()).filter(
      ({ status }) => status === "pending" || status === "running",
    );
    if (unfinished.length === 0) return true;
    for (const { run_id } of unfinished) await thread.comeDue(run_id);
    if (thread.isExecuting()) await thread.work(false);
    else if ((await thread.claim(false)).length === 0) await thread.sweep();
  }
  return false;
};

const expectWell = async (thread: SimulatedThread): Promise<void> => {
  expect(await drain(thread)).toBe(true);
  expect(await thread.complaints()).toEqual([]);
  expect(await thread.unfinishedRuns()).toBe(0);
};

/** Does the command on both sides, and compares their answers. */
const doBoth = async (thread: SimulatedThread, model: Model, step: Command): Promise<void> => {
  const { running, next } = model;
  switch (step.kind) {
    case "create":
    case "schedule": {
      const given = step.kind === "create" ? step : { isDelayed: false, slot: false };
      const runId = await (step.kind === "create"
        ? thread.create(step.strategy, step)
        : thread.schedule(step.strategy));
      expect(runId !== undefined).toBe(model.accepts(step.strategy));
      if (runId !== undefined)
        model.create(runId, step.strategy, !given.isDelayed, given.slot && !given.isDelayed);
      return;
    }
    case "come due":
    case "cancel": {
      const run = model.runs[step.run % Math.max(1, model.runs.length)];
      if (run === undefined) return;
      if (step.kind === "cancel") {
        await thread.cancel(run.runId, step.action);
        model.cancel(run, step.action);
      } else {
        await thread.comeDue(run.runId);
        if (run.status === "pending") run.isDue = true;
      }
      return;
    }
    case "claim": {
      let taken = await thread.claim(step.isCounting);
      const isTaken = next !== undefined;
      if (isTaken && taken.length === 0 && next.attempt === 0) {
        // A process died before it could let this run start, or the run was set aside while it was delayed.
        await thread.sweep();
        taken = await thread.claim(step.isCounting);
      }
      expect(taken).toEqual(isTaken ? [next.runId] : []);
      if (isTaken) model.start(next);
      return;
    }
    case "work":
      await thread.work(step.dies);
      if (running !== undefined) model.work(running);
      return;
    case "lose":
      await thread.lose(step.what);
      if (running !== undefined) model.lose(running);
      return;
    case "hand back":
      await thread.handBack();
      if (running !== undefined) model.handBack(running);
      return;
    case "write late":
      expect(await thread.lateWrite()).toBe(false);
      return;
    case "sweep":
      await thread.sweep();
  }
};

describe("a run that has begun is the next one of its thread, and a success has all its steps,", () => {
  test(
    "one command after the other, as a model says",
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(command, { minLength: 15, maxLength: 45 }), async (commands) => {
          const thread = await simulation.aThread();
          const model = new Model();
          for (const step of commands) {
            await doBoth(thread, model, step);
            const rows = new Map((await thread.rows()).map((row) => [row.run_id, row]));
            expect(model.runs.map(({ runId }) => rows.get(runId)?.status ?? "gone")).toEqual(
              model.runs.map(({ status }) => status),
            );
          }
          await expectWell(thread);
          await thread.remove();
        }),
        { numRuns: INTERLEAVINGS, seed: SEED, endOnFailure: true },
      );
    },
    TIME_LIMIT_MS,
  );

  test(
    "with several commands at the same time",
    async () => {
      const bursts = fc.array(fc.array(command, { minLength: 1, maxLength: 5 }), {
        minLength: 6,
        maxLength: 14,
      });
      await fc.assert(
        fc.asyncProperty(bursts, async (all) => {
          const thread = await simulation.aThread();
          for (const burst of all) {
            await Promise.all(burst.map((step) => doOne(thread, step)));
            const begun = (await thread.rows()).filter(
              ({ status, attempt }) => status === "running" || (status === "pending" && attempt > 0),
            );
            expect(begun.length).toBeLessThanOrEqual(1);
          }
          await expectWell(thread);
          await thread.remove();
        }),
        { numRuns: INTERLEAVINGS, seed: SEED, endOnFailure: true },
      );
    },
    TIME_LIMIT_MS,
  );
});

const doOne = async (thread: SimulatedThread, step: Command): Promise<unknown> => {
  const runIds = thread.runIds();
  /** Another claimer was faster. */
  const orNothing = (error: unknown): void => {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
  };
  switch (step.kind) {
    case "create":
      return await thread.create(step.strategy, step);
    case "schedule":
      return await thread.schedule(step.strategy);
    case "come due":
    case "cancel": {
      const runId = runIds[step.run % Math.max(1, runIds.length)];
      if (runId === undefined) return;
      return await (step.kind === "cancel" ? thread.cancel(runId, step.action) : thread.comeDue(runId));
    }
    case "claim":
      return await thread.claim(step.isCounting).catch(orNothing);
    case "work":
      return await thread.work(step.dies);
    case "lose":
      return await thread.lose(step.what);
    case "hand back":
      return await thread.handBack();
    case "write late":
      return expect(await thread.lateWrite()).toBe(false);
    case "sweep":
      return await thread.sweep();
  }
};
