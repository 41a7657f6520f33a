import { uuid6 } from "@langchain/langgraph-checkpoint";
import { pino } from "pino";
import { createCancellation } from "../../src/api/runs/cancellation.ts";
import { createBehindOthersStore } from "../../src/api/runs/creation/behind-others.ts";
import { createPendingLimits } from "../../src/api/runs/creation/pending-limits.ts";
import { createPlacing } from "../../src/api/runs/creation/placing.ts";
import type { RequestedRun } from "../../src/api/runs/creation/requests.ts";
import { createScheduledRuns } from "../../src/api/runs/creation/scheduled.ts";
import { createRunRepository } from "../../src/api/runs/repository.ts";
import { selectorOf, type AttemptSelector, type RunOutcome } from "../../src/engine/queue/attempts.ts";
import { createRunEnds } from "../../src/engine/queue/ending.ts";
import { createQueue } from "../../src/engine/queue/queue.ts";
import type { CancelAction, ClaimedRunRow, MultitaskStrategy } from "../../src/platform/database/tables.ts";
import { LeaseLostError, ThreadloomError } from "../../src/platform/domain/errors.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { createCheckpointStorage } from "../../src/state/checkpoints/storage.ts";
import type { AttemptSaver } from "../../src/state/checkpoints/types.ts";
import { isHeld } from "../../src/state/checkpoints/fences.ts";
import { ALL_RIGHTS, EVERY_THREAD } from "../helpers/access.ts";
import { freshDatabase } from "../helpers/database.ts";
import { openTestDatabase } from "../helpers/test-database.ts";
import { ASSISTANT, aNewRun } from "./queue/open-queue.ts";

/** Each run adds this many items to the state of its thread, after a checkpoint of its input. */
export const STEPS = 2;
export const MAX_ATTEMPTS = 3;
const LEASE_SECONDS = 10;
const DELAYED_SECONDS = 3_600;
/** Of a server whose clock is behind. */
const OLD_ID = "1d000000-0000-6000-8000-";
const HEX_DIGITS = 12;

interface Attempt extends AttemptSelector {
  label: string;
  saver: AttemptSaver;
  items: string[];
  head: string | undefined;
  hasInput: boolean;
  clockIsBehind: boolean;
  isAtWork: boolean;
}

const outcomeOf = (status: RunOutcome["status"]): RunOutcome => ({
  status,
  error: null,
  threadStatus: "idle",
  interrupts: "{}",
});

/**
 * Servers whose statements are the real ones, and whose graphs are replaced by single checkpoints. Each command returns when it is
 * stored, so a test decides what happens between two commands.
 */
export const openSimulation = async () => {
  const fresh = await freshDatabase();
  const database = openTestDatabase(fresh.connectionString, { poolSize: 4 });
  await database.query(
    "insert into threadloom.assistants (assistant_id, graph_id, name, version) values ($1, 'test', 'test', 1)",
    [ASSISTANT],
  );
  const storage = createCheckpointStorage({ database, logger: pino({ level: "silent" }) });
  const ends = createRunEnds(database, storage);
  const options = { maxAttempts: MAX_ATTEMPTS, graphIds: ["test"] };
  const queue = createQueue(database, options);
  const counting = createQueue(database, {
    ...options,
    runningLimits: { perCaller: 0, keyFactor: 1, byGraph: new Map([["test", 5]]) },
  });
  const limits = createPendingLimits({ perThread: 0, perCaller: 0, keyFactor: 1 });
  const behindOthers = createBehindOthersStore(ends, limits);
  const announcements = { stop: () => undefined, ended: () => undefined, available: () => undefined };
  const cancellation = createCancellation({ database, ends, announcements });
  const storeScheduled = createScheduledRuns({
    announcements,
    behindOthers,
    limits,
    takesRun: () => true,
    threadTtl: undefined,
  });

  const aThread = async () => {
    const threadId = newId();
    const workerId = newId();
    await database.query("insert into threadloom.threads (thread_id) values ($1)", [threadId]);
    const attempts = new Map<string, Attempt>();
    /** Attempts that lost their run, and may not know it. */
    const former: Attempt[] = [];
    const labels = new Map<string, string>();
    /** Runs that a later attempt found behind a checkpoint of another origin. */
    const overtaken: string[] = [];
    let clocks = 0;
    let created = 0;

    const stateOf = async (saver: Pick<AttemptSaver, "getTuple">) => {
      const tuple = await saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: "" } });
      const items = (tuple?.checkpoint.channel_values["items"] ?? []) as string[];
      return { head: tuple?.checkpoint.id, items };
    };

    const begin = async (run: ClaimedRunRow): Promise<void> => {
      const selector = selectorOf(run);
      const place = run.attempt > 1 ? await storage.placeOfRun(threadId, run.run_id) : "none";
      if (place === "overtaken") overtaken.push(run.run_id);
      const saver = storage.saverForAttempt({ ...selector, durability: "sync" });
      const state = await stateOf(saver);
      attempts.set(run.run_id, {
        ...selector,
        ...state,
        label: labels.get(run.run_id) ?? "",
        saver,
        hasInput: place !== "none",
        clockIsBehind: (clocks += 1) % 3 === 0,
        isAtWork: false,
      });
    };

    const put = async (attempt: Attempt, items: string[]): Promise<void> => {
      const { saver, head, clockIsBehind } = attempt;
      const id = clockIsBehind ? OLD_ID + newId().slice(-HEX_DIGITS) : uuid6(0);
      const versions = { items: items.length + 1 };
      await saver.put(
        { configurable: { thread_id: threadId, checkpoint_ns: "", checkpoint_id: head } },
        {
          v: 4,
          id,
          ts: new Date().toISOString(),
          channel_values: { items },
          channel_versions: versions,
          versions_seen: {},
        },
        { source: "loop", step: 0, parents: {} },
        versions,
      );
      await saver.flush();
      Object.assign(attempt, { head: id, items });
    };

    const requested = (strategy: MultitaskStrategy, afterSeconds: number): RequestedRun => {
      const label = `run ${(created += 1)}`;
      const run = aNewRun(threadId, { multitaskStrategy: strategy, afterSeconds });
      labels.set(run.runId, label);
      return {
        run,
        placement: { kind: "thread", threadId, createIfMissing: false },
        assistant: ASSISTANT,
        checkpointId: undefined,
      };
    };

    /** Executed by this process; none if it is at work already, because a server executes an attempt once. */
    const current = (): Attempt | undefined => [...attempts.values()].find(({ isAtWork }) => !isAtWork);
    const forget = (attempt: Attempt): void => {
      if (attempts.get(attempt.runId) === attempt) attempts.delete(attempt.runId);
    };
    const withCurrent = async (work: (attempt: Attempt) => Promise<unknown>): Promise<void> => {
      const attempt = current();
      if (attempt === undefined) return;
      attempt.isAtWork = true;
      try {
        await work(attempt);
      } catch (error) {
        if (!(error instanceof LeaseLostError)) throw error;
        former.push(attempt);
        forget(attempt);
      } finally {
        attempt.isAtWork = false;
      }
    };
    const end = async (attempt: AttemptSelector, how: CancelAction | "success" | "error"): Promise<void> => {
      if (how === "rollback") await ends.rollBack(attempt);
      else await ends.finish(attempt, outcomeOf(how === "interrupt" ? "interrupted" : how));
    };
    const claimed = async (claim: Promise<ClaimedRunRow[]>): Promise<string[]> => {
      const runs = await claim;
      for (const run of runs) await begin(run);
      return runs.map((run) => run.run_id);
    };
    const endAbandoned = async (): Promise<void> => {
      for (const run of await queue.listAbandoned(LEASE_SECONDS)) {
        await end(selectorOf(run), run.cancel_action ?? "error");
        await queue.advance(threadId);
      }
    };

    return {
      threadId,
      runIds: (): string[] => [...labels.keys()],
      overtaken,

      /** The id of the new run; undefined if it was refused. `slot`: of the server that gets the request. */
      async create(strategy: MultitaskStrategy, given: { isDelayed: boolean; slot: boolean }) {
        const started: ClaimedRunRow[] = [];
        const place = createPlacing({
          database,
          repository: createRunRepository(database),
          worker: {
            reserve: () =>
              given.slot ? { workerId, leaseSeconds: LEASE_SECONDS, graphIds: ["test"] } : undefined,
            cancelReservation: () => undefined,
            start(run) {
              started.push(run);
              return undefined;
            },
          },
          announcements,
          behindOthers,
          limits,
          everyThread: EVERY_THREAD,
          threadTtl: undefined,
        });
        const wanted = requested(strategy, given.isDelayed ? DELAYED_SECONDS : 0);
        try {
          const { row } = await place(ALL_RIGHTS, wanted, false);
          for (const run of started) await begin(run);
          return row.run_id;
        } catch (error) {
          if (!(error instanceof ThreadloomError) || error.kind !== "conflict") throw error;
          labels.delete(wanted.run.runId);
          return undefined;
        }
      },

      /** As a cron that is due. The id of the new run; undefined if it was refused, or the thread was locked. */
      async schedule(strategy: MultitaskStrategy): Promise<string | undefined> {
        const wanted = requested(strategy, 0);
        const { outcomes } = await database.transaction((transaction) =>
          storeScheduled(transaction, ALL_RIGHTS, [wanted]),
        );
        if (outcomes.get(wanted.run.runId) === "stored") return wanted.run.runId;
        labels.delete(wanted.run.runId);
        return undefined;
      },

      comeDue: (runId: string) =>
        database.query(
          "update threadloom.runs set available_at = now() where run_id = $1 and available_at > now() and status = 'pending'",
          [runId],
        ),

      /** Does nothing to a run that is gone. */
      async cancel(runId: string, action: CancelAction): Promise<void> {
        await cancellation
          .cancel(EVERY_THREAD, { threadId, runId }, action, "requested")
          .catch((error: unknown) => {
            if (!(error instanceof ThreadloomError) || error.kind !== "not_found") throw error;
          });
      },

      /** Ids of the runs that a server has taken. `isCounting`: it limits running runs. */
      claim: (isCounting: boolean): Promise<string[]> =>
        claimed((isCounting ? counting : queue).claim(workerId, LEASE_SECONDS, 2)),

      /** The next step of the running attempt, or its end. `dies`: just after the end, before the next run may start. */
      work: (dies: boolean): Promise<void> =>
        withCurrent(async (attempt) => {
          const [held] = await queue.renew([attempt], LEASE_SECONDS);
          if (held === undefined) throw new LeaseLostError(attempt.runId, attempt.attempt);
          const { label, items } = attempt;
          const own = items.filter((item) => item.startsWith(`${label}:`)).length;
          if (held.cancel_action === null && !attempt.hasInput) {
            await put(attempt, items);
            attempt.hasInput = true;
          } else if (held.cancel_action === null && own < STEPS)
            await put(attempt, [...items, `${label}:${own}`]);
          else {
            await end(attempt, held.cancel_action ?? "success");
            forget(attempt);
            if (!dies) await queue.advance(threadId);
          }
        }),

      /** The server of the running attempt is killed, or only its graph process. */
      lose: (what: "server" | "graph process"): Promise<void> =>
        withCurrent(async (attempt) => {
          if (what === "server") {
            await database.query(
              "update threadloom.runs set lease_until = now() - interval '1 second' where run_id = $1 and attempt = $2",
              [attempt.runId, attempt.attempt],
            );
            forget(attempt);
            // A thread that another statement locks is left to the next sweep; until then the attempt may write.
            await queue.requeueLost(LEASE_SECONDS);
            if (!(await isHeld(database, attempt))) former.push(attempt);
            await endAbandoned();
            return;
          }
          const kept = await queue.giveUpAttempt(attempt);
          forget(attempt);
          if (kept === undefined) return;
          await end(attempt, kept.cancel_action ?? "error");
          await queue.advance(threadId);
        }),

      /** The server of the running attempt stops. */
      handBack: (): Promise<void> =>
        withCurrent(async (attempt) => {
          const action = await queue.handBack(attempt);
          forget(attempt);
          if (action === undefined) return;
          await end(attempt, action);
          await queue.advance(threadId);
        }),

      /** A server that was taken for dead tries to write its next step. True if the step was stored. */
      async lateWrite(): Promise<boolean> {
        const attempt = former.pop();
        if (attempt === undefined) return false;
        try {
          await put(attempt, [...attempt.items, "late"]);
          return true;
        } catch (error) {
          if (error instanceof LeaseLostError) return false;
          throw error;
        }
      },

      async sweep(): Promise<void> {
        await queue.requeueLost(LEASE_SECONDS);
        await endAbandoned();
        await queue.putBehind();
        await queue.advanceForgotten();
      },

      isExecuting: (): boolean => attempts.size > 0,

      rows: () =>
        database.query<{ run_id: string; status: string; attempt: number; lost_attempts: number }>(
          "select run_id, status, attempt, lost_attempts from threadloom.runs where thread_id = $1",
          [threadId],
        ),
      async unfinishedRuns(): Promise<number | undefined> {
        const [thread] = await database.query<{ unfinished_runs: number }>(
          "select unfinished_runs from threadloom.threads where thread_id = $1",
          [threadId],
        );
        return thread?.unfinished_runs;
      },

      /** What is wrong with the state of a thread whose runs have ended, in sentences. */
      async complaints(): Promise<string[]> {
        const { items } = await stateOf(storage.saver);
        const rows = new Map(
          (
            await database.query<{ run_id: string; status: string }>(
              "select run_id, status from threadloom.runs where thread_id = $1",
              [threadId],
            )
          ).map((row) => [row.run_id, row.status]),
        );
        const writers = await database.query<{ run_id: string }>(
          `select distinct run_id from threadloom.checkpoints where thread_id = $1
           union select run_id from threadloom.checkpoint_writes where thread_id = $1`,
          [threadId],
        );
        const found = overtaken.map((runId) => `${labels.get(runId)} was overtaken`);
        for (const [runId, label] of labels) {
          const status = rows.get(runId) ?? "gone";
          const places = items.flatMap((item, place) => (item.startsWith(`${label}:`) ? [place] : []));
          const own = places.map((place) => items[place]);
          const isInOrder = own.every((item, index) => item === `${label}:${index}`);
          const isInOnePiece = places.every((place, index) => place === (places[0] ?? 0) + index);
          const expected =
            status === "success" ? own.length === STEPS : status !== "gone" || own.length === 0;
          if (!isInOrder || !isInOnePiece || !expected)
            found.push(`${label} is ${status} and left ${own.join()} in ${items.join()}`);
          if (status === "gone" && writers.some((row) => row.run_id === runId))
            found.push(`${label} is gone and left checkpoints`);
        }
        if (items.includes("late")) found.push("an attempt wrote after it had lost its run");
        return found;
      },

      async remove(): Promise<void> {
        await database.query("delete from threadloom.threads where thread_id = $1", [threadId]);
        await storage.deleteThread(threadId);
      },
    };
  };

  return {
    aThread,
    async close(): Promise<void> {
      await database.close();
      await fresh.drop();
    },
  };
};

export type Simulation = Awaited<ReturnType<typeof openSimulation>>;
export type SimulatedThread = Awaited<ReturnType<Simulation["aThread"]>>;
