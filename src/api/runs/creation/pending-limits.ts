import type { Queryable } from "../../../platform/database/database.ts";
import { tooMany, type ThreadloomError } from "../../../platform/domain/errors.ts";
import { isUser } from "../../../engine/queue/counted-as.ts";
import { pendingOfCallers, pendingOfThread } from "../../../engine/queue/sql/count-pending.ts";
import type { NewRun } from "../../../engine/queue/sql/create.ts";

export interface PendingLimitOptions {
  /** Runs of a user that may wait, on one thread and on all together; 0: no limit. */
  perThread: number;
  perCaller: number;
  /** How many times as many where nobody knows for how many users they are: of a key, or of a caller without a name. */
  keyFactor: number;
  /** A run may not wait. `caller`: as it is counted. */
  onRefused?: (caller: string | null) => void;
}

/** Who is counted, and who waits for what. */
type Counted = Pick<NewRun, "caller">;

/** How many runs may wait. What starts at once does not count. */
export interface PendingLimits {
  /** How many may wait on the thread of this run; null: no limit. */
  onThread(run: Counted): number | null;
  /** How many runs of its caller may wait; null: no limit. */
  ofCaller(run: Counted): number | null;
  /** Throws `tooMany` if a thread has so many, or more. */
  assertRoomOnThread(transaction: Queryable, run: Pick<NewRun, "caller" | "threadId">): Promise<void>;
  /**
   * Throws `tooMany` if the caller would have too many, all servers together. Who is far from it is not counted each time: a
   * tenth of what is left may be created without. So ten servers don't go beyond the limit, but for what is created at the
   * very moment.
   */
  assertRoomOfCaller(queryable: Queryable, run: Counted, runs?: number): Promise<void>;
  /** Of many runs: how many more may wait of each caller that is limited. */
  roomOfCallers(transaction: Queryable, runs: readonly Counted[]): Promise<Map<string, number>>;
}

const RETRY_SECONDS = 5;
/** What was counted is soon over. */
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

export const createPendingLimits = (
  { perThread, perCaller, keyFactor, onRefused }: PendingLimitOptions,
  now: () => number = () => performance.now(),
): PendingLimits => {
  /** How many more each caller may create before it is counted again. */
  const known = new Map<string, { free: number; until: number }>();

  const timesOf = (caller: string | null): number => (caller !== null && isUser(caller) ? 1 : keyFactor);
  const onThread = ({ caller }: Counted): number | null =>
    perThread === 0 ? null : perThread * timesOf(caller);
  const ofCaller = ({ caller }: Counted): number | null =>
    perCaller === 0 || caller === null ? null : perCaller * timesOf(caller);

  return {
    onThread,
    ofCaller,

    async assertRoomOnThread(transaction, run) {
      const atMost = onThread(run);
      if (atMost === null) return;
      if ((await pendingOfThread(transaction, run.threadId, atMost)) < atMost) return;
      onRefused?.(run.caller);
      throw threadFull(run.threadId, atMost);
    },

    async assertRoomOfCaller(queryable, run, runs = 1) {
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

    async roomOfCallers(transaction, runs) {
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
