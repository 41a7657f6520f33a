import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type { ExecutionOptions, GraphExecutor, WatchedSink } from "../executor.ts";
import type { DeathReason, GraphProcess } from "./graph-process.ts";
import { createMembers, isRegular, type Member, type Members, type MembersOptions } from "./members.ts";
import type { FromGraphProcess } from "./messages.ts";
import { createPlacing } from "./placing.ts";
import { RemoteExecution } from "./remote-execution.ts";
import { createRenewal } from "./renewal.ts";

export interface GraphProcessesOptions extends MembersOptions {
  /** Processes are replaced above these limits. */
  runsAtMost: number;
  residentBytesAtMost: number;
  /** Processes are killed above this limit: a graph may allocate faster than its process is replaced. */
  residentBytesKilled: number;
  onFiles?: ((files: readonly string[]) => void) | undefined;
  /** Called for each statement that stored checkpoints, with its seconds; up to a second later. */
  onCheckpointsWritten?: (seconds: number) => void;
}

export interface GraphProcessFigures {
  working: number;
  spare: number;
  starting: number;
  /** Unrequested ends since the server started. */
  deaths: Readonly<Record<DeathReason, number>>;
}

/**
 * Time between `stop` and the kill. The execution is given up after 0.5 s, so only a blocked event loop takes
 * longer.
 */
const STOP_MS = 5_000;
/** A supervisor kills the server after some seconds. */
const SHUTDOWN_STOP_MS = 1_500;

/** Runs with a process of their own at a time, besides the regular processes: each takes about 130 MB. */
const ALONE_AT_MOST = 4;
/** Another server may start processes meanwhile. */
const NONE_ALONE_MS = 30_000;

const NO_DEATHS: Readonly<Record<DeathReason, number>> = {
  exit: 0,
  signal: 0,
  blocked: 0,
  unstopped: 0,
  memory: 0,
  start: 0,
};

const isRegularAndReady = (member: Member): boolean => isRegular(member) && member.state === "ready";

/**
 * A run whose graph has ended does no harm, and a kill would lose its progress and the attempts of other
 * runs.
 */
const maySettle = ({ isGraphEnded, stopReason }: RemoteExecution): boolean =>
  isGraphEnded && stopReason?.kind !== "shutdown";

const createStopTimers = () => {
  const timers = new Map<RemoteExecution, NodeJS.Timeout>();
  return {
    start(execution: RemoteExecution, process: GraphProcess): void {
      if (maySettle(execution)) return;
      const ms = execution.stopReason?.kind === "shutdown" ? SHUTDOWN_STOP_MS : STOP_MS;
      const kill = (): void =>
        process.kill("unstopped", `was killed: the graph of a run went on for ${ms} ms after it was stopped`);
      timers.set(execution, setTimeout(kill, ms));
    },
    forget(execution: RemoteExecution): void {
      clearTimeout(timers.get(execution));
      timers.delete(execution);
    },
    close(): void {
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
};

const countsOf = ({ count }: Members): Omit<GraphProcessFigures, "deaths"> => ({
  working: count(({ role, state }) => role !== "spare" && state !== "starting"),
  spare: count(({ role, state }) => role === "spare" && (state === "ready" || state === "prepared")),
  starting: count(({ state }) => state === "starting"),
});

/** After a colon, the compiler's reason is on the second line. */
const sentenceOf = (message: string): string => {
  const [first = "", second = ""] = message.split("\n");
  return first.endsWith(":") ? `${first} ${second.trim()}` : first;
};

const boundMemory = (
  members: Members,
  member: Member,
  bytes: number,
  { residentBytesAtMost, residentBytesKilled }: GraphProcessesOptions,
): void => {
  const taken = `${Math.round(bytes / 1e6)} MB`;
  if (bytes > residentBytesKilled) member.process.kill("memory", `was killed: it took ${taken}`);
  else if (bytes > residentBytesAtMost) members.wear(member, `it takes ${taken}`);
};

/**
 * A graph that blocks, exits or fills its process harms only the runs beside it, which continue elsewhere
 * from their last checkpoints.
 */
export const createGraphProcesses = (options: GraphProcessesOptions) => {
  const { processes, runsAtMost, logger } = options;
  const members = createMembers(options, {
    onMessage: (member, message) => receive(member, message),
    onEnd: (member, reason, how) => hasEnded(member, reason, how),
  });
  const renewal = createRenewal(members);
  const placing = createPlacing(members, processes, logger);
  const stopTimers = createStopTimers();
  const deaths = { ...NO_DEATHS };
  let nextId = 1;
  let noneAloneUntil = 0;
  let hasLoaded = (): void => undefined;
  const loaded = new Promise<void>((resolve) => (hasLoaded = resolve));
  if (processes === 0) hasLoaded();

  const hasEnded = (member: Member, reason: DeathReason, how: string): void => {
    deaths[reason] += 1;
    renewal.hasEnded(member, how);
    members.remove(member);
    for (const execution of member.here.values()) {
      stopTimers.forget(execution);
      // The run that ignored `stop` is not tried again; the server's kill costs the others no attempt.
      if (reason === "unstopped") execution.handedBack();
      else execution.lost(how);
    }
    const { only } = member;
    if (only?.isPlaced === false) {
      noneAloneUntil = performance.now() + NONE_ALONE_MS;
      only.handedBack();
    }
    placing.placeWaiting();
  };

  const enforceStop = (execution: RemoteExecution): void => {
    const member = [...members.all].find(({ here }) => here.has(execution.id));
    if (member === undefined) {
      placing.withdraw(execution);
      return execution.lost("was not started");
    }
    stopTimers.start(execution, member.process);
  };

  const receiveReady = (member: Member): void => {
    member.state = "ready";
    member.readyAt = performance.now();
    placing.beginAlone(member);
    renewal.hasStarted(member);
    members.hasStarted();
    placing.placeWaiting();
    hasLoaded();
  };

  const receivePrepared = (member: Member): void => {
    if (member.role === "spare" && member.state === "starting") member.state = "prepared";
    members.hasStarted();
  };

  const receiveFailure = (member: Member, message: string): void => {
    if (renewal.hasFailed(member, message)) return;
    const sentence = sentenceOf(message);
    if (member.only?.isPlaced === false) {
      member.only.refused(sentence);
      member.only = undefined;
    }
    member.process.kill("start", `can't load its graphs: ${sentence}`);
    if (!renewal.isUnderWay() && members.count(isRegularAndReady) === 0)
      placing.endWaiting((execution) => execution.refused(sentence));
    hasLoaded();
  };

  const receiveResult = (
    member: Member,
    { id, result, records }: Extract<FromGraphProcess, { kind: "result" }>,
  ): void => {
    const execution = member.here.get(id);
    if (execution === undefined) return;
    member.here.delete(id);
    stopTimers.forget(execution);
    execution.arrived(result, records);
    if (member.only !== undefined || member.state === "leaving") {
      members.leave(member);
      placing.placeWaiting();
    } else if (member.begun >= runsAtMost) members.wear(member, `it has begun ${member.begun} runs`);
  };

  const receive = (member: Member, message: FromGraphProcess): void => {
    switch (message.kind) {
      case "ready":
        return receiveReady(member);
      case "prepared":
        return receivePrepared(member);
      case "failed":
        return receiveFailure(member, message.message);
      case "loaded":
        members.packagesLoaded(message.packages);
        return options.onFiles?.(message.files);
      case "events":
        for (const { id, events } of message.batches) member.here.get(id)?.emit(events);
        return;
      case "log":
        return member.here.get(message.id)?.log();
      case "records":
        return member.here.get(message.id)?.recorded(message.records);
      case "graph-ended": {
        const execution = member.here.get(message.id);
        execution?.graphEnded();
        if (execution !== undefined && maySettle(execution)) stopTimers.forget(execution);
        return;
      }
      case "result":
        return receiveResult(member, message);
      case "pong":
        for (const seconds of message.checkpointWrites ?? []) options.onCheckpointsWritten?.(seconds);
        boundMemory(members, member, message.residentBytes, options);
        return placing.placeWaiting();
    }
  };

  members.startMissing();

  return {
    /** Resolves when a process has loaded the graphs or failed to (development), or on `close`. */
    loaded,
    get aloneAtMost(): number {
      return performance.now() < noneAloneUntil ? 0 : ALONE_AT_MOST;
    },
    figures: (): GraphProcessFigures => ({ ...countsOf(members), deaths: { ...deaths } }),
    execute(run: ClaimedRunRow, sink: WatchedSink, executionOptions: ExecutionOptions): RemoteExecution {
      const execution = new RemoteExecution(nextId, run, sink, executionOptions, enforceStop);
      nextId += 1;
      placing.begin(execution);
      return execution;
    },
    listening: members.listening,
    /** Only with `isReloading`. */
    renew: processes === 0 ? () => Promise.resolve() : renewal.renew,
    async close(): Promise<void> {
      hasLoaded();
      members.stopStarting();
      renewal.close();
      placing.close();
      await members.close();
      stopTimers.close();
    },
  } satisfies GraphExecutor & Record<string, unknown>;
};

export type GraphProcesses = ReturnType<typeof createGraphProcesses>;
