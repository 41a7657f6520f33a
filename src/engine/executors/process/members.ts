import { createBackOff } from "../../../platform/lib/back-off.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import {
  startGraphProcess,
  type DeathReason,
  type GraphProcess,
  type GraphProcessOptions,
} from "./graph-process.ts";
import type { FromGraphProcess, GraphProcessSetup } from "./messages.ts";
import type { RemoteExecution } from "./remote-execution.ts";

export interface Member {
  process: GraphProcess;
  /** `prepared`: waits for `load`; only with `isReloading`. */
  state: "starting" | "prepared" | "ready" | "leaving";
  readyAt: number;
  /**
   * `alone`: executes only one run; `successor`: replaces all regular processes once it has loaded the
   * new code.
   */
  role: "regular" | "spare" | "alone" | "successor";
  /** The run of a process with the role `alone`. */
  only: RemoteExecution | undefined;
  here: Map<number, RemoteExecution>;
  begun: number;
  isWorn: boolean;
}

const newMember = (role: Member["role"]): Omit<Member, "process"> => ({
  state: "starting",
  readyAt: 0,
  role,
  only: undefined,
  here: new Map(),
  begun: 0,
  isWorn: false,
});

export const isRegular = ({ role, state }: Member): boolean => role === "regular" && state !== "leaving";
export const isSpare = ({ role, state }: Member): boolean => role === "spare" && state !== "leaving";

export const idsOf = ({ here }: Member): string[] => [...here.values()].map(({ run }) => run.run_id);

export const leastBusy = (members: Iterable<Member>): Member | undefined => {
  let best: Member | undefined;
  for (const member of members) {
    if (!isRegular(member) || member.state !== "ready" || !member.process.isResponsive) continue;
    const isBetter =
      best === undefined ||
      member.here.size < best.here.size ||
      (member.here.size === best.here.size && member.begun < best.begun);
    if (isBetter) best = member;
  }
  return best;
};

export interface MembersOptions extends Omit<
  GraphProcessOptions,
  "onMessage" | "onEnd" | "isFailureLogged" | "setup"
> {
  setup: Omit<GraphProcessSetup, "packagesAhead">;
  /** Development: see `packagesAhead` in messages.ts. */
  isReloading?: boolean;
  processes: number;
  /** Additional warm processes, to replace one that ends. */
  spares: number;
}

interface MemberEvents {
  onMessage(member: Member, message: FromGraphProcess): void;
  onEnd(member: Member, reason: DeathReason, how: string): void;
}

/** If a process dies sooner and has begun no run, the next start is delayed. */
const SHORT_LIFE_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;

const LOG_AGAIN_MS = 60_000;

const createExitLog = (logger: Logger, isDevelopment: boolean) => {
  let failed = 0;
  let loggedAt = -Infinity;
  const isLogged = (): boolean =>
    failed > 0 && (isDevelopment || performance.now() - loggedAt < LOG_AGAIN_MS);
  return {
    /** Whether the log has the reason already. */
    isLogged,
    ended(member: Member, how: string, cause: unknown): void {
      const fields = { graph_process: member.process.id, runs: idsOf(member), err: cause };
      if (member.state !== "starting") return logger.error(fields, `a graph process ${how}`);
      const isKnown = isLogged();
      failed += 1;
      if (isKnown) {
        return logger.debug(fields, `a graph process ${how} before it was ready`);
      }
      loggedAt = performance.now();
      logger.error(
        { ...fields, failed_starts: failed },
        `a graph process ${how} before it was ready; it is tried again`,
      );
    },
    started(): void {
      if (failed > 1) logger.info({ failed_starts: failed }, "graph processes start again");
      failed = 0;
      loggedAt = -Infinity;
    },
  };
};

const createApiAddress = (members: ReadonlySet<Member>) => {
  let address: string | undefined;
  const send = ({ process }: Member): void => {
    if (address !== undefined) process.send({ kind: "listening", address });
  };
  return {
    send,
    listening(at: string): void {
      address = at;
      members.forEach(send);
    },
  };
};

export const createMembers = (options: MembersOptions, { onMessage, onEnd }: MemberEvents) => {
  const { processes, spares, isReloading = false, logger } = options;
  const members = new Set<Member>();
  const restarts = createBackOff({ longestMs: LONGEST_PAUSE_MS });
  const ends = createExitLog(logger, isReloading);
  let packages: readonly string[] = [];
  const api = createApiAddress(members);
  let pause: NodeJS.Timeout | undefined;
  let isClosing = false;

  const count = (isMeant: (member: Member) => boolean): number => [...members].filter(isMeant).length;

  const start = (role: Member["role"]): Member => {
    const member: Member = {
      process: startGraphProcess({
        ...options,
        setup: { ...options.setup, packagesAhead: isReloading ? packages : undefined },
        onMessage: (message) => onMessage(member, message),
        isFailureLogged: ends.isLogged,
        onEnd: (reason, how, cause) => {
          ends.ended(member, how, cause);
          onEnd(member, reason, how);
        },
      }),
      ...newMember(role),
    };
    members.add(member);
    api.send(member);
    if (isReloading && role !== "spare") member.process.load();
    return member;
  };

  const takeSpare = (role: Member["role"]): Member | undefined => {
    const warm = [...members].filter(isSpare);
    const spare = warm.find(({ state }) => state !== "starting") ?? warm[0];
    if (spare === undefined) return undefined;
    spare.role = role;
    if (isReloading) {
      spare.state = "starting";
      spare.process.load();
    }
    return spare;
  };

  /** Spares start after the regular processes: a start uses a core for a second. */
  const startMissing = (): void => {
    if (isClosing) return;
    let missing = processes - count(isRegular);
    while (missing > 0 && takeSpare("regular") !== undefined) missing -= 1;
    if (pause !== undefined) return;
    for (; missing > 0; missing -= 1) start("regular");
    if (count(({ state }) => state === "starting") === 0 && count(isSpare) < spares) start("spare");
  };
  /** No pause after an end caused by a run: the run's attempts are limited. */
  const pauseMsAfter = ({ state, begun, readyAt }: Member): number => {
    const isShort = state === "starting" || (begun === 0 && performance.now() - readyAt < SHORT_LIFE_MS);
    if (isShort) return restarts.next();
    restarts.reset();
    return 0;
  };
  const startMissingAfter = (pauseMs: number): void => {
    if (pauseMs > 0) {
      pause ??= setTimeout(() => {
        pause = undefined;
        startMissing();
      }, pauseMs);
    }
    startMissing();
  };

  /** Closes the process when its executions have ended. */
  const leave = (member: Member): void => {
    member.state = "leaving";
    if (member.here.size > 0) return;
    void member.process.close().then(() => members.delete(member));
  };

  const take = (role: Member["role"]): Member => takeSpare(role) ?? start(role);

  /** One at a time: each needs a spare. */
  const replaceWorn = (): void => {
    if (isReloading) return;
    const worn = [...members].find((member) => member.isWorn && isRegular(member));
    const spare = [...members].find((member) => isSpare(member) && member.state === "ready");
    if (isClosing || worn === undefined || spare === undefined) return;
    spare.role = "regular";
    leave(worn);
  };
  const useReady = (): void => {
    replaceWorn();
    startMissing();
  };
  const hasStarted = (): void => {
    ends.started();
    useReady();
  };

  return {
    all: members as ReadonlySet<Member>,
    count,
    startMissing,
    hasStarted,
    leave,
    take,

    wear(member: Member, why: string): void {
      if (member.isWorn || !isRegular(member)) return;
      member.isWorn = true;
      logger.info({ graph_process: member.process.id }, `a graph process is replaced: ${why}`);
      useReady();
    },

    /** The caller places the run when the process is ready and calls `startMissing`. */
    takeAlone(execution: RemoteExecution): Member {
      const member = take("alone");
      member.only = execution;
      return member;
    },

    listening: api.listening,

    packagesLoaded(loaded: readonly string[]): void {
      packages = loaded;
    },

    remove(member: Member): void {
      members.delete(member);
      startMissingAfter(member.role === "alone" ? 0 : pauseMsAfter(member));
    },

    stopStarting(): void {
      isClosing = true;
      clearTimeout(pause);
    },
    async close(): Promise<void> {
      await Promise.all([...members].map((member) => member.process.close()));
    },
  };
};

export type Members = ReturnType<typeof createMembers>;
