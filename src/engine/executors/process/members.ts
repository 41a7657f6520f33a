import type { DeathReason } from "./deaths.ts";
import { createExitLog } from "./exit-log.ts";
import type { RemoteExecution } from "./remote-execution.ts";
import { startGraphProcess, type GraphProcessOptions } from "./graph-process.ts";
import { isRegular, isSpare, newMember, type Member } from "./member.ts";
import type { FromGraphProcess, GraphProcessSetup } from "./messages.ts";
import { createRestarts } from "./restarts.ts";

export interface MembersOptions extends Omit<
  GraphProcessOptions,
  "onMessage" | "onUnresponsive" | "onCulprit" | "onEnd" | "isFailureLogged" | "setup"
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
  onUnresponsive(member: Member): void;
  onEnd(member: Member, reason: DeathReason, how: string): void;
}

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

export const createMembers = (
  options: MembersOptions,
  { onMessage, onUnresponsive, onEnd }: MemberEvents,
) => {
  const { processes, spares, isReloading = false, logger } = options;
  const members = new Set<Member>();
  const restarts = createRestarts();
  const ends = createExitLog(logger, { isDevelopment: isReloading });
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
        onUnresponsive: () => onUnresponsive(member),
        onCulprit: (culprit) => (member.culprit = culprit),
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
    takeAlone(suspect: RemoteExecution): Member {
      const member = take("alone");
      member.suspect = suspect;
      return member;
    },

    listening: api.listening,

    packagesLoaded(loaded: readonly string[]): void {
      packages = loaded;
    },

    remove(member: Member): number {
      members.delete(member);
      const pauseMs = restarts.pauseMsAfter(member);
      startMissingAfter(member.role === "alone" ? 0 : pauseMs);
      return pauseMs;
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
