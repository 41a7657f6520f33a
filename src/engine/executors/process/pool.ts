import { createBackOff } from "../../../platform/lib/back-off.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import type { ExecutionOptions, GraphExecutor, WatchedSink } from "../executor.ts";
import {
  startGraphProcess,
  type DeathReason,
  type GraphProcess,
  type GraphProcessOptions,
} from "./graph-process.ts";
import type { FromGraphProcess } from "./messages.ts";
import { RemoteExecution } from "./remote-execution.ts";

export interface GraphProcessesOptions extends Omit<
  GraphProcessOptions,
  "onMessage" | "onEnd" | "isFailureLogged"
> {
  /** Regular processes. */
  processes: number;
  /** Additional warm processes, to replace one that ends. */
  spares: number;
  /** Processes are replaced above these limits. */
  runsAtMost: number;
  residentBytesAtMost: number;
  /** Processes are killed above this limit: a graph may allocate faster than its process is replaced. */
  residentBytesKilled: number;
  /** Development: the files that the graphs have loaded so far. */
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

interface Member {
  readonly process: GraphProcess;
  /**
   * `alone`: executes only one run; `successor`: replaces all regular processes once it has loaded the
   * new code.
   */
  role: "regular" | "spare" | "alone" | "successor";
  state: "starting" | "ready" | "leaving";
  readyAt: number;
  /** The run of a process with the role `alone`. */
  only: RemoteExecution | undefined;
  readonly here: Map<number, RemoteExecution>;
  begun: number;
  isWorn: boolean;
}

const isRegular = ({ role, state }: Member): boolean => role === "regular" && state !== "leaving";
const isSpare = ({ role, state }: Member): boolean => role === "spare" && state !== "leaving";
const isStarting = ({ state }: Member): boolean => state === "starting";
const isReady = ({ state }: Member): boolean => state === "ready";

/** Each takes about 130 MB besides the regular processes. */
const ALONE_AT_MOST = 4;
/** Another server may start processes meanwhile. */
const NONE_ALONE_MS = 30_000;
/** If a process dies sooner and has begun no run, the next start is delayed. */
const SHORT_LIFE_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;
/** About once a minute. */
const LOGGED_FAILURES = 12;

/** Says to a person why the new code of the graphs is not executed. The old code goes on. */
export class NotRenewed extends Error {
  override readonly name = "NotRenewed";
}

/** After a colon, the compiler's reason is on the second line. */
const sentenceOf = (message: string): string => {
  const [first = "", second = ""] = message.split("\n");
  return first.endsWith(":") ? `${first} ${second.trim()}` : first;
};

/**
 * A graph that blocks, exits or fills its process harms only the runs beside it, which continue elsewhere
 * from their last checkpoints.
 */
export class GraphProcesses implements GraphExecutor {
  /** Resolves when a process has loaded the graphs or failed to (development), or on `close`. */
  readonly loaded: Promise<void>;
  #hasLoaded = (): void => undefined;
  readonly #members = new Set<Member>();
  /** Executions that wait for a regular process. */
  readonly #waiting = new Set<RemoteExecution>();
  readonly #restarts = createBackOff({ longestMs: LONGEST_PAUSE_MS });
  #pause: NodeJS.Timeout | undefined;
  #failedStarts = 0;
  readonly #deaths = { exit: 0, signal: 0, blocked: 0, unstopped: 0, memory: 0, start: 0 };
  #renewal: { successor: Member; settle(failure?: NotRenewed): void } | undefined;
  #address: string | undefined;
  #nextId = 1;
  #noneAloneUntil = 0;
  #isClosing = false;

  constructor(private readonly options: GraphProcessesOptions) {
    this.loaded = new Promise<void>((resolve) => (this.#hasLoaded = resolve));
    if (options.processes === 0) this.#hasLoaded();
    this.#startMissing();
  }

  get aloneAtMost(): number {
    return performance.now() < this.#noneAloneUntil ? 0 : ALONE_AT_MOST;
  }

  figures(): GraphProcessFigures {
    return {
      working: this.#with(({ role, state }) => role !== "spare" && state !== "starting").length,
      spare: this.#with((member) => isSpare(member) && isReady(member)).length,
      starting: this.#with(isStarting).length,
      deaths: { ...this.#deaths },
    };
  }

  execute(run: ClaimedRunRow, sink: WatchedSink, options: ExecutionOptions): RemoteExecution {
    const withdraw = (withdrawn: RemoteExecution): void => void this.#waiting.delete(withdrawn);
    const execution = new RemoteExecution(this.#nextId, run, sink, options, withdraw);
    this.#nextId += 1;
    if (this.#isClosing) queueMicrotask(() => execution.lost("was not started"));
    else if (options.isAlone) {
      const member = this.#take("alone");
      member.only = execution;
      if (isReady(member)) this.#beginAlone(member);
      this.#startMissing();
    } else {
      this.#waiting.add(execution);
      this.#placeWaiting();
    }
    return execution;
  }

  /** Graphs call the API at this address. */
  listening(address: string): void {
    this.#address = address;
    for (const { process } of this.#members) process.send({ kind: "listening", address });
  }

  /**
   * Loads the graphs' new code; a later call replaces a running one. Only in development. Throws NotRenewed if the code
   * can't be loaded.
   */
  async renew(): Promise<void> {
    if (this.options.processes === 0) return;
    const before = this.#renewal?.successor;
    this.#endRenewal(new NotRenewed("was changed once more"));
    if (before !== undefined) this.#leave(before);
    const successor = this.#start("successor");
    await new Promise<void>((resolve, reject) => {
      const settle = (failure?: NotRenewed): void => (failure === undefined ? resolve() : reject(failure));
      this.#renewal = { successor, settle };
    });
  }

  async close(): Promise<void> {
    this.#hasLoaded();
    this.#isClosing = true;
    clearTimeout(this.#pause);
    this.#endRenewal(new NotRenewed("The server stops."));
    this.#endWaiting((execution) => execution.lost("was not started"));
    await Promise.all([...this.#members].map(({ process }) => process.close()));
  }

  readonly #with = (isMeant: (member: Member) => boolean): Member[] => [...this.#members].filter(isMeant);

  #endRenewal(failure?: NotRenewed): void {
    this.#renewal?.settle(failure);
    this.#renewal = undefined;
  }

  #start(role: Member["role"]): Member {
    const process = startGraphProcess({
      ...this.options,
      onMessage: (message) => this.#receive(member, message),
      onEnd: (reason, how, cause) => this.#hasEnded(member, reason, how, cause),
      isFailureLogged: this.#failedStarts % LOGGED_FAILURES > 0,
    });
    const member: Member = {
      process,
      role,
      state: "starting",
      readyAt: 0,
      only: undefined,
      here: new Map(),
      begun: 0,
      isWorn: false,
    };
    this.#members.add(member);
    if (this.#address !== undefined) process.send({ kind: "listening", address: this.#address });
    return member;
  }

  #takeSpare(role: Member["role"]): Member | undefined {
    const spares = this.#with(isSpare);
    const spare = spares.find(isReady) ?? spares[0];
    if (spare !== undefined) spare.role = role;
    return spare;
  }

  #take(role: Member["role"]): Member {
    return this.#takeSpare(role) ?? this.#start(role);
  }

  /** Spares start after the regular processes: a start uses a core for a second. */
  #startMissing(): void {
    if (this.#isClosing) return;
    const { processes, spares } = this.options;
    let missing = processes - this.#with(isRegular).length;
    while (missing > 0 && this.#takeSpare("regular") !== undefined) missing -= 1;
    if (this.#pause !== undefined) return;
    for (; missing > 0; missing -= 1) this.#start("regular");
    if (this.#with(isStarting).length === 0 && this.#with(isSpare).length < spares) this.#start("spare");
  }

  /** Closes the process when its executions have ended. */
  #leave(member: Member): void {
    member.state = "leaving";
    if (member.here.size > 0) return;
    void member.process.close().then(() => this.#members.delete(member));
  }

  /** Starts what is missing after an end. No pause after an end caused by a run: the run's attempts are limited. */
  #replace({ role, state, begun, readyAt }: Member): void {
    const isShort = state === "starting" || (begun === 0 && performance.now() - readyAt < SHORT_LIFE_MS);
    if (role !== "alone" && isShort) {
      this.#pause ??= setTimeout(() => {
        this.#pause = undefined;
        this.#startMissing();
      }, this.#restarts.next());
    } else if (role !== "alone") this.#restarts.reset();
    this.#startMissing();
  }

  #wear(member: Member, why: string): void {
    if (member.isWorn || !isRegular(member)) return;
    member.isWorn = true;
    this.options.logger.info({ graph_process: member.process.id }, `a graph process is replaced: ${why}`);
    this.#replaceWorn();
  }

  /** One at a time: each needs a spare. */
  #replaceWorn(): void {
    const [worn] = this.#with((member) => member.isWorn && isRegular(member));
    const [spare] = this.#with((member) => isSpare(member) && isReady(member));
    if (!this.#isClosing && worn !== undefined && spare !== undefined) {
      spare.role = "regular";
      this.#leave(worn);
    }
    this.#startMissing();
  }

  #place(execution: RemoteExecution, member: Member): void {
    member.here.set(execution.id, execution);
    member.begun += 1;
    execution.placeAt(member.process);
  }

  #placeWaiting(): void {
    for (const execution of this.#waiting) {
      const [least] = this.#with(
        (member) => isRegular(member) && isReady(member) && member.process.isResponsive,
      ).sort((one, other) => one.here.size - other.here.size || one.begun - other.begun);
      if (least === undefined) return;
      this.#waiting.delete(execution);
      this.#place(execution, least);
    }
  }

  #beginAlone(member: Member): void {
    const { only } = member;
    if (only === undefined) return;
    if (only.stopReason === undefined) this.#place(only, member);
    else this.#leave(member);
  }

  /** No process gets ready while the graphs can't be loaded. */
  #endWaiting(end: (execution: RemoteExecution) => void): void {
    this.#waiting.forEach(end);
    this.#waiting.clear();
  }

  #receive(member: Member, message: FromGraphProcess): void {
    switch (message.kind) {
      case "ready":
        return this.#isReady(member);
      case "failed":
        return this.#canNotLoad(member, message.message);
      case "loaded":
        return this.options.onFiles?.(message.files);
      case "events":
        for (const [id, events] of message.batches) member.here.get(id)?.emit(events);
        return;
      case "log":
        return member.here.get(message.id)?.log();
      case "records":
        return member.here.get(message.id)?.recorded(message.records);
      case "graph-ended":
        return member.here.get(message.id)?.graphEnded();
      case "result":
        return this.#receiveResult(member, message);
      case "pong":
        for (const seconds of message.checkpointWrites ?? []) this.options.onCheckpointsWritten?.(seconds);
        this.#boundMemory(member, message.residentBytes);
        return this.#placeWaiting();
    }
  }

  #isReady(member: Member): void {
    member.state = "ready";
    member.readyAt = performance.now();
    this.#beginAlone(member);
    if (member === this.#renewal?.successor) {
      // These processes finish their runs and begin no more.
      for (const regular of this.#with(isRegular)) this.#leave(regular);
      member.role = "regular";
      this.#endRenewal();
    }
    if (this.#failedStarts > 1)
      this.options.logger.info({ failed_starts: this.#failedStarts }, "graph processes start again");
    this.#failedStarts = 0;
    this.#replaceWorn();
    this.#placeWaiting();
    this.#hasLoaded();
  }

  #canNotLoad(member: Member, message: string): void {
    if (member === this.#renewal?.successor) {
      this.#endRenewal(new NotRenewed(message));
      return this.#leave(member);
    }
    const sentence = sentenceOf(message);
    if (member.only?.isPlaced === false) {
      member.only.refused(sentence);
      member.only = undefined;
    }
    member.process.kill("start", `can't load its graphs: ${sentence}`);
    if (this.#renewal === undefined && this.#with(isRegular).filter(isReady).length === 0)
      this.#endWaiting((execution) => execution.refused(sentence));
    this.#hasLoaded();
  }

  #receiveResult(member: Member, message: Extract<FromGraphProcess, { kind: "result" }>): void {
    const execution = member.here.get(message.id);
    if (execution === undefined) return;
    member.here.delete(message.id);
    execution.arrived(message.result, message.records);
    if (member.only !== undefined || member.state === "leaving") {
      this.#leave(member);
      this.#placeWaiting();
    } else if (member.begun >= this.options.runsAtMost)
      this.#wear(member, `it has begun ${member.begun} runs`);
  }

  #boundMemory(member: Member, bytes: number): void {
    const taken = `${Math.round(bytes / 1e6)} MB`;
    if (bytes > this.options.residentBytesKilled)
      member.process.kill("memory", `was killed: it took ${taken}`);
    else if (bytes > this.options.residentBytesAtMost) this.#wear(member, `it takes ${taken}`);
  }

  #logEnd({ process, state, here }: Member, how: string, cause: Error | undefined): void {
    const { logger } = this.options;
    const runs = [...here.values()].map(({ run }) => run.run_id);
    const fields = { graph_process: process.id, runs, err: cause };
    if (state !== "starting") return logger.error(fields, `a graph process ${how}`);
    const level = this.#failedStarts % LOGGED_FAILURES === 0 ? "error" : "debug";
    this.#failedStarts += 1;
    logger[level](
      { ...fields, failed_starts: this.#failedStarts },
      `a graph process ${how} before it was ready; it is tried again`,
    );
  }

  #hasEnded(member: Member, reason: DeathReason, how: string, cause?: Error): void {
    this.#logEnd(member, how, cause);
    this.#deaths[reason] += 1;
    if (member === this.#renewal?.successor)
      this.#endRenewal(new NotRenewed(`The process that loaded the graphs ${how}.`));
    this.#members.delete(member);
    this.#replace(member);
    for (const execution of member.here.values()) {
      // The run that ignored `stop` is not tried again; the server's kill costs the others no attempt.
      if (reason === "unstopped") execution.handedBack();
      else execution.lost(how);
    }
    const { only } = member;
    if (only?.isPlaced === false) {
      this.#noneAloneUntil = performance.now() + NONE_ALONE_MS;
      only.handedBack();
    }
    this.#placeWaiting();
  }
}
