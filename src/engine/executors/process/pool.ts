import type { Logger } from "../../../lib/logger.ts";
import type { GraphExecutor } from "../executor.ts";
import { NO_DEATHS, type DeathReason } from "./deaths.ts";
import { createDoubts } from "./doubts.ts";
import { ExecutionThere } from "./execution-there.ts";
import { startGraphProcess } from "./graph-process.ts";
import { idsOf, isRegular, isSpare, leastBusy, type Member } from "./member.ts";
import type { FromGraphProcess, GraphProcessSetup } from "./messages.ts";
import { createRestarts } from "./restarts.ts";
import { createStopTimers } from "./stop-timers.ts";

export interface GraphProcessesOptions {
  /** Processes that execute runs. */
  processes: number;
  /** Processes beyond those that are kept warm, to take the place of one that ends. */
  spares: number;
  /** See GraphProcessOptions. */
  entry: URL;
  setup: GraphProcessSetup;
  heapMegabytes: number;
  blockedSeconds: number;
  /** A process is replaced after it has begun so many runs, or when it takes so much memory. */
  runsAtMost: number;
  residentBytesAtMost: number;
  /** A process that takes more is killed: a graph may take it faster than its process is replaced. */
  residentBytesKilled: number;
  logger: Logger;
}

/** For the metrics. */
export interface GraphProcessFigures {
  /** Processes that execute runs, that are ready to take the place of one, and that load their graphs. */
  working: number;
  spare: number;
  starting: number;
  /** Ends that nobody asked for, since the server has started. */
  deaths: Readonly<Record<DeathReason, number>>;
}

export interface GraphProcesses extends GraphExecutor {
  figures(): GraphProcessFigures;
  /** After everything that was executed has ended. */
  close(): Promise<void>;
}

/**
 * Executes graphs in warm processes. What a graph does to its process (a loop without an end, an exit, all the memory)
 * it does to the runs beside it there, which go on elsewhere from their last checkpoints, and to nothing else.
 */
export const createGraphProcesses = (options: GraphProcessesOptions): GraphProcesses => {
  const { processes, spares, runsAtMost, logger } = options;
  const members = new Set<Member>();
  /** Executions for which no process is ready, the oldest first. */
  const waiting = new Set<ExecutionThere>();
  const stopTimers = createStopTimers();
  const doubts = createDoubts();
  const restarts = createRestarts();
  const deaths = { ...NO_DEATHS };
  let pause: NodeJS.Timeout | undefined;
  let isClosing = false;
  let nextId = 1;

  const count = (isMeant: (member: Member) => boolean): number => [...members].filter(isMeant).length;
  const place = (execution: ExecutionThere, member: Member): void => {
    waiting.delete(execution);
    member.here.set(execution.id, execution);
    member.begun += 1;
    execution.placeAt(member.process);
  };

  const placeWaiting = (): void => {
    for (const execution of waiting) {
      const member = leastBusy(members);
      if (member === undefined) return;
      place(execution, member);
    }
  };

  const leave = (member: Member): void => {
    member.state = "leaving";
    if (member.here.size > 0) return;
    void member.process.close().then(() => members.delete(member));
  };

  /** A spare that is ready, else one that will be sooner than a process that is started now. */
  const takeSpare = (role: Member["role"]): Member | undefined => {
    const spares = [...members].filter(isSpare);
    const spare = spares.find(({ state }) => state === "ready") ?? spares[0];
    if (spare !== undefined) spare.role = role;
    return spare;
  };

  const start = (role: Member["role"]): Member => {
    const member: Member = {
      process: startGraphProcess({
        ...options,
        onMessage: (message) => hear(member, message),
        onEnd: (reason, how, cause) => {
          logger.error(
            { graph_process: member.process.id, runs: idsOf(member), err: cause },
            `a graph process ${how}`,
          );
          hasEnded(member, reason, how);
        },
      }),
      state: "starting",
      readyAt: 0,
      role,
      suspect: undefined,
      here: new Map(),
      begun: 0,
      isWorn: false,
    };
    members.add(member);
    return member;
  };

  /** A spare waits for the others: a start takes a core for a second, and theirs is waited for. */
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

  /** One after the other: each needs a spare. */
  const replaceWorn = (): void => {
    const worn = [...members].find((member) => member.isWorn && isRegular(member));
    const spare = [...members].find((member) => isSpare(member) && member.state === "ready");
    if (isClosing || worn === undefined || spare === undefined) return;
    spare.role = "regular";
    leave(worn);
  };
  const wear = (member: Member, why: string): void => {
    if (member.isWorn || !isRegular(member)) return;
    member.isWorn = true;
    logger.info({ graph_process: member.process.id }, `a graph process is replaced: ${why}`);
    replaceWorn();
    startMissing();
  };

  const beginSuspect = (member: Member, suspect: ExecutionThere): void => {
    if (suspect.stopReason === undefined) place(suspect, member);
    else leave(member);
  };
  const becameReady = (member: Member): void => {
    member.state = "ready";
    member.readyAt = performance.now();
    if (member.suspect !== undefined) beginSuspect(member, member.suspect);
    replaceWorn();
    startMissing();
    placeWaiting();
  };

  /** Each costs a process; there are as many as suspects may have. */
  const goesAlone = ({ isSuspect, run }: ExecutionThere): boolean =>
    (doubts.take(run.run_id) && count(({ role }) => role === "alone") < processes) || isSuspect;

  const hasEnded = (member: Member, reason: DeathReason, how: string): void => {
    members.delete(member);
    deaths[reason] += 1;
    const pauseMs = restarts.pauseMsAfter(member);
    startMissingAfter(member.role === "alone" ? 0 : pauseMs);
    if (reason !== "unstopped") doubts.died(member);
    for (const execution of member.here.values()) {
      stopTimers.forget(execution);
      // The run that did not stop has ended it, and is not tried again; the others have done nothing.
      if (reason === "unstopped") execution.handedBack();
      else execution.lost(how);
    }
    const { suspect } = member;
    if (suspect !== undefined && !suspect.isPlaced && suspect.stopReason === undefined) {
      setTimeout(() => beginAlone(suspect), pauseMs);
    }
    placeWaiting();
  };

  const beginAlone = (execution: ExecutionThere): void => {
    if (isClosing || execution.stopReason !== undefined) return execution.lost("was not started");
    const member = takeSpare("alone") ?? start("alone");
    member.suspect = execution;
    if (member.state === "ready") beginSuspect(member, execution);
    startMissing();
  };

  const enforceStop = (execution: ExecutionThere): void => {
    const member = [...members].find(({ here }) => here.has(execution.id));
    if (member === undefined) {
      waiting.delete(execution);
      return execution.lost("was not started");
    }
    stopTimers.start(execution, member.process);
  };

  const hearGraphEnd = (execution: ExecutionThere | undefined): void => {
    if (execution === undefined) return;
    execution.graphEnded();
    stopTimers.graphEnded(execution);
  };

  const hearResult = (
    member: Member,
    { id, result }: Extract<FromGraphProcess, { kind: "result" }>,
  ): void => {
    const execution = member.here.get(id);
    if (execution === undefined) return;
    member.here.delete(id);
    stopTimers.forget(execution);
    execution.arrived(result);
    if (member.suspect !== undefined || member.state === "leaving") return leave(member);
    if (member.begun >= runsAtMost) wear(member, `it has begun ${member.begun} runs`);
  };

  const hearMemory = (member: Member, bytes: number): void => {
    const taken = `${Math.round(bytes / 1e6)} MB`;
    if (bytes > options.residentBytesKilled) member.process.kill("memory", `was killed: it took ${taken}`);
    else if (bytes > options.residentBytesAtMost) wear(member, `it takes ${taken}`);
  };

  const hear = (member: Member, message: FromGraphProcess): void => {
    switch (message.kind) {
      case "ready":
        return becameReady(member);
      case "events":
        for (const { id, events } of message.batches) member.here.get(id)?.emit(events);
        return;
      case "graph-ended":
        return hearGraphEnd(member.here.get(message.id));
      case "result":
        return hearResult(member, message);
      case "pong":
        hearMemory(member, message.residentBytes);
        // It may have been too busy to be given anything.
        return placeWaiting();
    }
  };

  startMissing();

  return {
    suspectsAtOnce: processes,
    figures: () => ({
      working: count(({ role, state }) => role !== "spare" && state !== "starting"),
      spare: count(({ role, state }) => role === "spare" && state === "ready"),
      starting: count(({ state }) => state === "starting"),
      deaths: { ...deaths },
    }),
    execute(run, sink, executionOptions) {
      const execution = new ExecutionThere(nextId, run, sink, executionOptions, enforceStop);
      nextId += 1;
      if (isClosing) queueMicrotask(() => execution.lost("was not started"));
      else if (goesAlone(execution)) beginAlone(execution);
      else {
        waiting.add(execution);
        placeWaiting();
      }
      return execution;
    },
    async close() {
      isClosing = true;
      clearTimeout(pause);
      for (const execution of waiting) execution.lost("was not started");
      await Promise.all(
        [...members].map(async (member) => {
          await member.process.close();
        }),
      );
      stopTimers.close();
    },
  };
};
