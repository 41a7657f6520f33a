import type { JsonObject } from "../../../platform/lib/json.ts";
import { newId } from "../../../platform/lib/ids.ts";
import type { Advance, ClaimOptions, DueCron, DueCrons } from "./due.ts";
import { requestedRun, type Placement, type RequestedRun } from "../../runs/creation/requests.ts";
import { runBody, threadlessRunBody } from "../../runs/schemas.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { CronRow } from "../../../platform/database/tables.ts";
import { ZodError } from "zod";
import type { Database } from "../../../platform/database/database.ts";
import { isCancelled, isPassing } from "../../../platform/database/passing-faults.ts";
import { ThreadloomError } from "../../../platform/domain/errors.ts";
import type { Faults } from "../../../platform/domain/faults.ts";
import type { CreationRights } from "../../../engine/queue/sql/create.ts";
import type { StoreScheduledRuns } from "../../runs/creation/scheduled.ts";
import { readSchedule } from "../schedule.ts";

/**
 * The run has the cron's metadata and `cron_id`, as in the hosted service. Throws a `ZodError` for an outdated request.
 */
const requestOf = (cron: DueCron): RequestedRun => {
  const asked = {
    ...(JSON.parse(cron.payload) as JsonObject),
    assistant_id: cron.assistant_id,
    metadata: { ...cron.metadata, cron_id: cron.cron_id },
  };
  const placement: Placement =
    cron.thread_id === null
      ? { kind: "threadless", keep: cron.on_run_completed === "keep" }
      : { kind: "thread", threadId: cron.thread_id, createIfMissing: false };
  const body = placement.kind === "thread" ? runBody.parse(asked) : threadlessRunBody.parse(asked);
  return requestedRun(body, placement, {
    runId: newId(),
    authUser: cron.auth_user,
    caller: cron.caller,
    readerId: null,
  });
};

/** A later run replaces missed runs. */
const MISSED_SECONDS = 60;
/** In crons; a full map is cleared. */
const REMEMBERED_AT_MOST = 10_000;

interface Outcome {
  cron: Pick<CronRow, "cron_id"> & { next_run_date: Date; now: Date };
  error: string | null;
  /** Undefined if a run was created, or if the cron has ended. */
  leftOut: "busy" | "waits" | "full" | "too often" | undefined;
  isRun: boolean;
}

const WHY_LEFT_OUT = {
  busy: "a cron was due while its thread was busy, so nothing is run",
  waits: "a cron was due while its former run still waits for its thread, so nothing is run",
  "too often": "a cron was due while its caller has no run left in this minute, so nothing is run",
  full: "a cron was due while too many runs wait on its thread or for its creator, so nothing is run",
};

/** A cron of every minute on a busy thread would fill the log, so a skipped run is logged once. */
const createFiringLog = (logger: Logger) => {
  const leavingOut = new Map<string, Outcome["leftOut"]>();
  return ({ cron, error, leftOut, isRun }: Outcome): void => {
    const { cron_id: cronId } = cron;
    const fields = { cron_id: cronId, due: cron.next_run_date.toISOString() };
    const isLogged = leavingOut.get(cronId) === leftOut;
    leavingOut.delete(cronId);
    if (error !== null) {
      logger.warn({ ...fields, reason: error }, "a cron can't be run and was disabled");
    } else if (leftOut !== undefined) {
      if (leavingOut.size >= REMEMBERED_AT_MOST) leavingOut.clear();
      leavingOut.set(cronId, leftOut);
      if (!isLogged) logger.info(fields, `${WHY_LEFT_OUT[leftOut]}; logged once, until it runs again`);
    } else if (isRun && cron.now.getTime() - cron.next_run_date.getTime() > MISSED_SECONDS * 1_000) {
      logger.info(
        fields,
        "a cron was due while no server ran it; one run makes up for all times that were missed",
      );
    }
  };
};

export interface FiringParts {
  database: Database;
  due: DueCrons;
  storeRuns: StoreScheduledRuns;
  /** Holds pending runs of this process until the returned function is called. */
  holdRuns: () => () => void;
  /** The creators of crons were authorized before. */
  rights: CreationRights;
  faults: Faults;
  logger: Logger;
}

/** A batch of this size holds its locks for about 50 ms. */
const CRONS_AT_ONCE = 200;
/** The pause between two attempts to claim due crons that another process has locked. */
export const LOCKED_ELSEWHERE_MS = 50;
/** Pending runs start after this time, even if crons are still being fired. */
const HOLD_AT_MOST_MS = 1_000;

interface Plan {
  cron: DueCron;
  requested: RequestedRun | undefined;
  waits: boolean;
  next: Date | null;
  error: string | null;
}

interface Fired {
  claimed: number;
  /** Ids of crons whose threads are locked or deleted. */
  notNow: string[];
  announce(): void;
}

const NOTHING: Fired = { claimed: 0, notNow: [], announce: () => undefined };

/** The returned function throws for a schedule that can no longer be parsed. */
const createTimes = () => {
  const known = new Map<string, Date | null>();
  return ({ schedule, timezone, end_time, now }: DueCron): Date | null => {
    const key = `${timezone ?? ""} ${schedule}`;
    let next = known.get(key);
    if (next === undefined) {
      next = readSchedule(schedule, timezone).next(now) ?? null;
      known.set(key, next);
    }
    return next === null || (end_time !== null && next >= end_time) ? null : next;
  };
};

const planOf = (
  cron: DueCron,
  waiting: ReadonlySet<string>,
  nextOf: (cron: DueCron) => Date | null,
): Plan => {
  const nothing = { cron, requested: undefined, waits: false, next: null };
  if (cron.end_time !== null && cron.end_time <= cron.now) return { ...nothing, error: null };
  if (!cron.assistant_is_there) return { ...nothing, error: `Assistant '${cron.assistant_id}' not found.` };
  try {
    const requested = requestOf(cron);
    const waits = waiting.has(cron.cron_id) && requested.run.multitaskStrategy === "enqueue";
    return { cron, requested: waits ? undefined : requested, waits, next: nextOf(cron), error: null };
  } catch (error) {
    // Another version of the server stored the request.
    if (error instanceof ThreadloomError) return { ...nothing, error: error.message };
    if (error instanceof ZodError)
      return { ...nothing, error: `'payload': ${error.issues[0]?.message ?? ""}.` };
    throw error;
  }
};

/** One transaction stores a cron's run and advances the cron. If the process dies before the commit, the cron stays due. */
export const createFiring = (parts: FiringParts) => {
  const { database, due, storeRuns, holdRuns, rights, faults, logger } = parts;

  const log = createFiringLog(logger);

  /** `onClaimed` receives the ids before a cron can fail. */
  const fireSome = async (options: ClaimOptions, onClaimed: (ids: string[]) => void): Promise<Fired> => {
    const nextOf = createTimes();
    const done = await database.transaction(async (transaction) => {
      const claimed = await due.claim(transaction, options);
      if (claimed.length === 0) return undefined;
      onClaimed(claimed.map(({ cron_id }) => cron_id));
      const waiting = await due.waiting(transaction, claimed);
      const plans = claimed.map((cron) => planOf(cron, waiting, nextOf));
      const { outcomes, announce } = await storeRuns(
        transaction,
        rights,
        plans.flatMap(({ requested }) => requested ?? []),
      );
      const settled = plans.map((plan) => {
        const outcome = plan.requested && outcomes.get(plan.requested.run.runId);
        const isGone = outcome === "no assistant";
        const error = isGone ? `Assistant '${plan.cron.assistant_id}' not found.` : plan.error;
        return { plan: { ...plan, error, next: error === null ? plan.next : null }, outcome };
      });
      const handled = settled.filter(({ outcome }) => outcome !== "not now");
      const advances = handled.map(({ plan }): Advance => ({
        cronId: plan.cron.cron_id,
        next: plan.next,
        error: plan.error,
      }));
      await due.advance(transaction, advances);
      faults.reached("before-firing");
      return { settled, announce };
    });
    if (done === undefined) return NOTHING;
    faults.reached("after-firing");
    for (const { plan, outcome } of done.settled) {
      if (outcome === "not now") continue;
      const { cron, error, waits, requested } = plan;
      const leftOut = waits
        ? "waits"
        : outcome === "rejected"
          ? "busy"
          : outcome === "full" || outcome === "too often"
            ? outcome
            : undefined;
      log({ cron, error, leftOut, isRun: requested !== undefined });
    }
    const notNow = done.settled.flatMap(({ plan, outcome }) =>
      outcome === "not now" ? plan.cron.cron_id : [],
    );
    return { claimed: done.settled.length, notNow, announce: done.announce };
  };

  /** Skips a due time after a lasting error. */
  const skip = async (cronId: string, error: unknown): Promise<void> => {
    await database.transaction(async (transaction) => {
      const nextOf = createTimes();
      const claimed = await due.claim(transaction, { except: [], only: [cronId], limit: 1 });
      const advances = claimed.map((cron): Advance => ({ cronId, next: nextOf(cron), error: null }));
      await due.advance(transaction, advances);
    });
    logger.error(
      { err: error, cron_id: cronId },
      "a cron could not be run; it is tried again at its next time",
    );
  };

  /** A failing cron does not block the others. */
  const fireBatch = async (except: readonly string[]): Promise<Fired> => {
    let ids: string[] = [];
    try {
      return await fireSome({ except, only: undefined, limit: CRONS_AT_ONCE }, (claimed) => (ids = claimed));
    } catch (error) {
      // A cancelled batch took longer than the role's `statement_timeout`. One by one its crons may succeed.
      if ((isPassing(error) && !isCancelled(error)) || ids.length === 0) throw error;
    }
    const fired: Fired[] = [];
    for (const id of ids) {
      try {
        fired.push(await fireSome({ except, only: [id], limit: 1 }, () => undefined));
      } catch (error) {
        if (isPassing(error)) throw error;
        await skip(id, error);
      }
    }
    return {
      claimed: ids.length,
      notNow: fired.flatMap(({ notNow }) => notNow),
      announce: () => fired.forEach(({ announce }) => announce()),
    };
  };

  return {
    poll: () => due.poll(),

    /** Fires due crons until none is left or `isClosed`. Returns true if at least one due cron was advanced. */
    async fire(isClosed: () => boolean): Promise<boolean> {
      const except: string[] = [];
      const announcements: (() => void)[] = [];
      let isSome = false;
      // Otherwise the first runs would take the processor from crons that are not fired yet.
      const release = holdRuns();
      const releasing = setTimeout(release, HOLD_AT_MOST_MS);
      try {
        while (!isClosed()) {
          const { claimed, notNow, announce } = await fireBatch(except);
          if (claimed === 0) break;
          isSome ||= claimed > notNow.length;
          except.push(...notNow);
          announcements.push(announce);
        }
      } finally {
        clearTimeout(releasing);
        try {
          for (const announce of announcements) announce();
        } finally {
          release();
        }
      }
      return isSome;
    },
  };
};

export type Firing = ReturnType<typeof createFiring>;
