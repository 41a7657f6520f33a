import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type { ExecutionOptions, WatchedSink } from "../executor.ts";
import { NO_DEATHS, type DeathReason } from "./deaths.ts";
import { RemoteExecution } from "./remote-execution.ts";
import { isRegular, type Member } from "./member.ts";
import { createMembers, type Members, type MembersOptions } from "./members.ts";
import type { FromGraphProcess } from "./messages.ts";
import { createPlacing } from "./placing.ts";
import { receiveLog, takeBackAwaited } from "./relief.ts";
import { createRenewal } from "./renewal.ts";
import { createStopTimers } from "./stop-timers.ts";

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

const isSpareAndReady = ({ role, state }: Member): boolean =>
  role === "spare" && (state === "ready" || state === "prepared");
const isRegularAndReady = (member: Member): boolean => isRegular(member) && member.state === "ready";

const countsOf = ({ count }: Members): Omit<GraphProcessFigures, "deaths"> => ({
  working: count(({ role, state }) => role !== "spare" && state !== "starting"),
  spare: count(isSpareAndReady),
  starting: count(({ state }) => state === "starting"),
});

/** After a colon, the compiler's reason is on the second line. */
const sentenceOf = (message: string): string => {
  const [first = "", second = ""] = message.split("\n");
  return first.endsWith(":") ? `${first} ${second.trim()}` : first;
};

const boundMemory = (
  members: Pick<Members, "wear">,
  member: Member,
  bytes: number,
  options: Pick<GraphProcessesOptions, "residentBytesAtMost" | "residentBytesKilled">,
): void => {
  const taken = `${Math.round(bytes / 1e6)} MB`;
  if (bytes > options.residentBytesKilled) member.process.kill("memory", `was killed: it took ${taken}`);
  else if (bytes > options.residentBytesAtMost) members.wear(member, `it takes ${taken}`);
};

type FromProcess<Kind> = Extract<FromGraphProcess, { kind: Kind }>;

/**
 * A graph that blocks, exits or fills its process harms only the runs beside it, which continue elsewhere
 * from their last checkpoints.
 */
export const createGraphProcesses = (options: GraphProcessesOptions) => {
  const { processes, runsAtMost } = options;
  const members = createMembers(options, {
    onMessage: (member, message) => receive(member, message),
    onUnresponsive: (member) => takeBackAwaited(members, member, (execution) => stopTimers.forget(execution)),
    onEnd: (member, reason, how) => hasEnded(member, reason, how),
  });
  const placing = createPlacing(members, options);
  const renewal = createRenewal(members);
  const stopTimers = createStopTimers();
  const deaths = { ...NO_DEATHS };
  let nextId = 1;
  let hasLoaded = (): void => undefined;
  const loaded = new Promise<void>((resolve) => (hasLoaded = resolve));

  const hasEnded = (member: Member, reason: DeathReason, how: string): void => {
    deaths[reason] += 1;
    renewal.hasEnded(member, how);
    const pauseMs = members.remove(member);
    if (reason !== "unstopped") placing.suspicion(member, reason);
    const { culprit } = member;
    for (const execution of member.here.values()) {
      stopTimers.forget(execution);
      // The run that ignored `stop` caused the end and is not tried again; the others keep their attempts.
      const neighbours = member.here.size - 1;
      if (reason === "unstopped" || placing.clears(member, execution, { reason, neighbours }))
        execution.handedBack();
      else execution.lost(culprit?.id === execution.id ? `${how}: it ${culprit.how}` : how);
    }
    placing.beginAgain(member, pauseMs);
    placing.placeWaiting();
  };

  const enforceStop = (execution: RemoteExecution): void => {
    const member = placing.withdraw(execution);
    if (member === undefined) return execution.lost("was not started");
    stopTimers.start(execution, member.process);
  };

  const receiveReady = (member: Member): void => {
    member.state = "ready";
    member.readyAt = performance.now();
    placing.beginSuspect(member);
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
    if (member.suspect?.isPlaced === false) {
      member.suspect.refused(sentence);
      member.suspect = undefined;
    }
    member.process.kill("start", `can't load its graphs: ${sentence}`);
    if (!renewal.isUnderWay() && members.count(isRegularAndReady) === 0) placing.refuseWaiting(sentence);
    hasLoaded();
  };

  const receiveGraphEnd = (execution: RemoteExecution | undefined): void => {
    execution?.graphEnded();
    if (execution !== undefined) stopTimers.graphEnded(execution);
  };

  const receiveResult = (member: Member, { id, result, records }: FromProcess<"result">): void => {
    const execution = member.here.get(id);
    if (execution === undefined) return;
    member.here.delete(id);
    stopTimers.forget(execution);
    execution.arrived(result, records);
    if (member.suspect !== undefined || member.state === "leaving") return members.leave(member);
    if (member.begun >= runsAtMost) members.wear(member, `it has begun ${member.begun} runs`);
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
      case "begun":
        return member.here.get(message.id)?.begun();
      case "log":
        return receiveLog(member, message.id);
      case "records":
        return member.here.get(message.id)?.recorded(message.records);
      case "graph-ended":
        return receiveGraphEnd(member.here.get(message.id));
      case "result":
        return receiveResult(member, message);
      case "pong":
        for (const seconds of message.checkpointWrites ?? []) options.onCheckpointsWritten?.(seconds);
        if (member.culprit?.isUnresponsive) member.culprit = undefined;
        boundMemory(members, member, message.residentBytes, options);
        return placing.placeWaiting();
    }
  };

  members.startMissing();

  return {
    /** Resolves when a process has loaded the graphs or failed to (development), or on `close`. */
    loaded,
    suspectsAtOnce: processes,
    figures: (): GraphProcessFigures => ({ ...countsOf(members), deaths: { ...deaths } }),
    execute(run: ClaimedRunRow, sink: WatchedSink, executionOptions: ExecutionOptions): RemoteExecution {
      const execution = new RemoteExecution(nextId, run, sink, executionOptions, enforceStop);
      nextId += 1;
      placing.begin(execution);
      return execution;
    },
    listening: members.listening,
    /** Only with `isReloading`. */
    renew: renewal.renew,
    async close(): Promise<void> {
      hasLoaded();
      members.stopStarting();
      renewal.close();
      placing.close();
      await members.close();
      stopTimers.close();
    },
  };
};

export type GraphProcesses = ReturnType<typeof createGraphProcesses>;
