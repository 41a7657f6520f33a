import type { Queryable } from "../../../platform/database/database.ts";
import { tooMany, type ThreadloomError } from "../../../platform/domain/errors.ts";
import { isUser } from "../../../engine/queue/counted-as.ts";
import { pendingOfCallers, pendingOfThread } from "../../../engine/queue/sql/count-pending.ts";
import type { NewRun } from "../../../engine/queue/sql/create.ts";

export interface PendingLimitOptions {
  /** Pending runs of one user; 0: no limit. */
  perThread: number;
  perCaller: number;
  /** Multiplies the limits of API keys and of unnamed callers, who may stand for many users. */
  keyFactor: number;
  /** `caller`: the name under which limits count the run. */
  onRefused?: (caller: string | null) => void;
}

type Counted = Pick<NewRun, "caller">;

const RETRY_SECONDS = 5;
const KNOWN_FOR_MS = 1_000;
const PART_WITHOUT_COUNTING = 10;
const KNOWN_AT_MOST = 1_000;

const threadFull = (threadId: string, atMost: number): ThreadloomError =>
  tooMany(
    `Thread '${threadId}' has ${atMost} runs or more that wait, and no more are taken; try again when some have ended.`,
    RETRY_SECONDS,
  );
const callerFull = (atMost: number): ThreadloomError =>
  tooMany(
    `At most ${atMost} runs of one caller wait at the same time; try again when some have ended.`,
    RETRY_SECONDS,
  );

/** Runs that start immediately are not counted. */
export const createPendingLimits = (
  { perThread, perCaller, keyFactor, onRefused }: PendingLimitOptions,
  now: () => number = () => performance.now(),
) => {
  /** The runs that a caller may create before the next count. */
  const known = new Map<string, { free: number; until: number }>();

  const timesOf = (caller: string | null): number => (caller !== null && isUser(caller) ? 1 : keyFactor);
  /** Null: no limit. */
  const onThread = ({ caller }: Counted): number | null =>
    perThread === 0 ? null : perThread * timesOf(caller);
  /** Null: no limit. */
  const ofCaller = ({ caller }: Counted): number | null =>
    perCaller === 0 || caller === null ? null : perCaller * timesOf(caller);

  return {
    onThread,
    ofCaller,

    /** Throws `tooMany`. */
    async assertRoomOnThread(
      transaction: Queryable,
      run: Pick<NewRun, "caller" | "threadId">,
    ): Promise<void> {
      const atMost = onThread(run);
      if (atMost === null) return;
      if ((await pendingOfThread(transaction, run.threadId, atMost)) < atMost) return;
      onRefused?.(run.caller);
      throw threadFull(run.threadId, atMost);
    },

    /**
     * Counts the runs of all servers; throws `tooMany`. After a count, a tenth of the room needs no new count, so ten
     * servers hardly exceed the limit.
     */
    async assertRoomOfCaller(queryable: Queryable, run: Counted, runs = 1): Promise<void> {
      const { caller } = run;
      const atMost = ofCaller(run);
      if (caller === null || atMost === null) return;
      const before = known.get(caller);
      if (before !== undefined && before.until > now() && before.free >= runs) {
        before.free -= runs;
        return;
      }
      known.delete(caller);
      const pending = (await pendingOfCallers(queryable, [{ caller, atMost }])).get(caller) ?? 0;
      const left = atMost - pending - runs;
      if (left < 0) {
        onRefused?.(caller);
        throw callerFull(atMost);
      }
      if (known.size >= KNOWN_AT_MOST) known.clear();
      known.set(caller, { free: Math.floor(left / PART_WITHOUT_COUNTING), until: now() + KNOWN_FOR_MS });
    },

    /** The room by caller, for callers with a limit. */
    async roomOfCallers(transaction: Queryable, runs: readonly Counted[]): Promise<Map<string, number>> {
      const callers = new Set(runs.flatMap(({ caller }) => caller ?? []));
      const limits = [...callers].flatMap((caller) => {
        const atMost = ofCaller({ caller });
        return atMost === null ? [] : [{ caller, atMost }];
      });
      const pending = await pendingOfCallers(transaction, limits);
      return new Map(limits.map(({ caller, atMost }) => [caller, atMost - (pending.get(caller) ?? 0)]));
    },
  };
};

export type PendingLimits = ReturnType<typeof createPendingLimits>;
