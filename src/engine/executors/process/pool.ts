import { createBackOff } from "../../../lib/back-off.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { GraphExecutor } from "../executor.ts";
import { ExecutionThere } from "./execution-there.ts";
import { startGraphProcess, type GraphProcess } from "./graph-process.ts";
import type { FromGraphProcess, GraphProcessSetup } from "./messages.ts";

export interface GraphProcessesOptions {
  /** Processes that are kept warm. */
  processes: number;
  /** See GraphProcessOptions. */
  entry: URL;
  setup: GraphProcessSetup;
  heapMegabytes: number;
  blockedSeconds: number;
  /** A process is replaced after it has begun so many runs, or when it takes so much memory. */
  runsAtMost: number;
  residentBytesAtMost: number;
  logger: Logger;
}

export interface GraphProcesses extends GraphExecutor {
  /** Processes that execute runs now or could. */
  readonly ready: number;
  /** After everything that was executed has ended. */
  close(): Promise<void>;
}

/** One process of the pool. */
interface Member {
  process: GraphProcess;
  state: "starting" | "ready" | "leaving";
  readyAt: number;
  /** The run that it was started for alone. */
  suspect: ExecutionThere | undefined;
  /** Takes the place of this one when it is ready. */
  replaces: Member | undefined;
  here: Map<number, ExecutionThere>;
  begun: number;
  isWorn: boolean;
}

/** What a run may take to end after it was told to stop; then its process is killed. Its graph was given 0.5 s of it. */
const STOP_MS = 5_000;
/** The same when the server ends: whoever stops it kills it after some seconds. */
const SHUTDOWN_STOP_MS = 1_500;
/** A process that lived shorter than this is not started again at once. */
const SHORT_LIFE_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;

const idsOf = (member: Member): string[] => [...member.here.values()].map(({ run }) => run.run_id);

/**
 * Executes graphs in warm processes. What a graph does to its process (a loop without an end, an exit, all the memory)
 * it does to the runs beside it there, which go on elsewhere from their last checkpoints, and to nothing else.
 */
export const createGraphProcesses = (options: GraphProcessesOptions): GraphProcesses => {
  const { processes, runsAtMost, residentBytesAtMost, logger } = options;
  const members = new Set<Member>();
  /** Executions for which no process is ready, the oldest first. */
  const waiting = new Set<ExecutionThere>();
  const stopTimers = new Map<ExecutionThere, NodeJS.Timeout>();
  const restarts = createBackOff({ longestMs: LONGEST_PAUSE_MS });
  let pause: NodeJS.Timeout | undefined;
  let isClosing = false;
  let nextId = 1;

  const isRegular = (member: Member): boolean =>
    member.suspect === undefined && member.replaces === undefined && member.state !== "leaving";

  const place = (execution: ExecutionThere, member: Member): void => {
    waiting.delete(execution);
    member.here.set(execution.id, execution);
    member.begun += 1;
    execution.placeAt(member.process);
  };

  /** Who has the fewest runs; among those, who has begun the fewest. */
  const findPlace = (): Member | undefined => {
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
  const placeWaiting = (): void => {
    for (const execution of waiting) {
      const member = findPlace();
      if (member === undefined) return;
      place(execution, member);
    }
  };

  const leave = (member: Member): void => {
    member.state = "leaving";
    if (member.here.size > 0) return;
    void member.process.close().then(() => members.delete(member));
  };

  const becameReady = (member: Member): void => {
    member.state = "ready";
    member.readyAt = performance.now();
    const { suspect, replaces } = member;
    if (suspect !== undefined) {
      if (suspect.stopReason === undefined) place(suspect, member);
      else leave(member);
    } else if (replaces !== undefined) {
      member.replaces = undefined;
      leave(replaces);
      replaceWorn();
    }
    placeWaiting();
  };

  const hasEnded = (member: Member, how: string): void => {
    members.delete(member);
    logger.error({ graph_process: member.process.id, runs: idsOf(member) }, `a graph process ${how}`);
    const isShort = member.state === "starting" || performance.now() - member.readyAt < SHORT_LIFE_MS;
    const pauseMs = isShort ? restarts.next() : 0;
    if (!isShort) restarts.reset();
    for (const other of members) if (other.replaces === member) other.replaces = undefined;
    for (const execution of member.here.values()) {
      forgetStop(execution);
      execution.lost(how);
    }
    const { suspect } = member;
    if (suspect !== undefined && !suspect.isPlaced && suspect.stopReason === undefined) {
      setTimeout(() => beginAlone(suspect), pauseMs);
    }
    startMissing(pauseMs);
  };

  const start = (purpose: Partial<Pick<Member, "suspect" | "replaces">> = {}): void => {
    const member: Member = {
      process: startGraphProcess({
        ...options,
        onMessage: (message) => hear(member, message),
        onEnd: (how) => hasEnded(member, how),
      }),
      state: "starting",
      readyAt: 0,
      suspect: purpose.suspect,
      replaces: purpose.replaces,
      here: new Map(),
      begun: 0,
      isWorn: false,
    };
    members.add(member);
  };

  const startMissing = (pauseMs = 0): void => {
    if (isClosing || pause !== undefined) return;
    if (pauseMs > 0) {
      pause = setTimeout(() => {
        pause = undefined;
        startMissing();
      }, pauseMs);
      return;
    }
    const missing = processes - [...members].filter(isRegular).length;
    for (let count = 0; count < missing; count += 1) start();
  };

  /** One at a time: each is one process more for as long as it starts. */
  const replaceWorn = (): void => {
    if (isClosing || [...members].some(({ replaces }) => replaces !== undefined)) return;
    const worn = [...members].find((member) => member.isWorn && isRegular(member));
    if (worn !== undefined) start({ replaces: worn });
  };
  const wear = (member: Member, why: string): void => {
    if (member.isWorn || !isRegular(member)) return;
    member.isWorn = true;
    logger.info({ graph_process: member.process.id }, `a graph process is replaced: ${why}`);
    replaceWorn();
  };

  const beginAlone = (execution: ExecutionThere): void => {
    if (isClosing || execution.stopReason !== undefined) return execution.lost("was not started");
    start({ suspect: execution });
  };

  const forgetStop = (execution: ExecutionThere): void => {
    clearTimeout(stopTimers.get(execution));
    stopTimers.delete(execution);
  };
  const enforceStop = (execution: ExecutionThere): void => {
    const member = [...members].find(({ here }) => here.has(execution.id));
    if (member === undefined) {
      waiting.delete(execution);
      return execution.lost("was not started");
    }
    const ms = execution.stopReason?.kind === "shutdown" ? SHUTDOWN_STOP_MS : STOP_MS;
    const timer = setTimeout(
      () => member.process.kill(`was killed: a run went on for ${ms} ms after it was stopped`),
      ms,
    );
    stopTimers.set(execution, timer);
  };

  const hearResult = (
    member: Member,
    { id, result }: Extract<FromGraphProcess, { kind: "result" }>,
  ): void => {
    const execution = member.here.get(id);
    if (execution === undefined) return;
    member.here.delete(id);
    forgetStop(execution);
    execution.arrived(result);
    if (member.suspect !== undefined || member.state === "leaving") return leave(member);
    if (member.begun >= runsAtMost) wear(member, `it has begun ${member.begun} runs`);
  };

  const hear = (member: Member, message: FromGraphProcess): void => {
    switch (message.kind) {
      case "ready":
        return becameReady(member);
      case "events":
        for (const { id, events } of message.batches) member.here.get(id)?.emit(events);
        return;
      case "graph-ended":
        return member.here.get(message.id)?.graphEnded();
      case "result":
        return hearResult(member, message);
      case "pong":
        if (message.residentBytes > residentBytesAtMost) {
          wear(member, `it takes ${Math.round(message.residentBytes / 1e6)} MB`);
        }
        // It may have been too busy to be given anything.
        return placeWaiting();
    }
  };

  startMissing();

  return {
    suspectsAtOnce: processes,
    get ready() {
      return [...members].filter((member) => member.state === "ready").length;
    },
    execute(run, sink, executionOptions) {
      const execution = new ExecutionThere(nextId, run, sink, executionOptions, enforceStop);
      nextId += 1;
      if (isClosing) queueMicrotask(() => execution.lost("was not started"));
      else if (execution.isSuspect) beginAlone(execution);
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
      for (const timer of stopTimers.values()) clearTimeout(timer);
    },
  };
};
