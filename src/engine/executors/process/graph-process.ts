import { fork, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { DeathReason } from "./deaths.ts";
import { readExitReport, EXIT_REPORT_DESCRIPTOR } from "./exit-report.ts";
import type { Culprit, FromGraphProcess, GraphProcessSetup, ToGraphProcess } from "./messages.ts";
import { logOutput } from "./output.ts";

export interface GraphProcessOptions {
  /** The program of the process: JavaScript, which brings the loader for TypeScript along. */
  entry: URL;
  setup: GraphProcessSetup;
  /** The heap of V8; a graph that fills it ends its process. */
  heapMegabytes: number;
  /** How long the process may leave questions unanswered before it is killed; 0: for ever. */
  blockedSeconds: number;
  onMessage(message: FromGraphProcess): void;
  /** Called when the process has left so many questions unanswered that it counts as unresponsive. */
  onUnresponsive(): void;
  /** Called before `onEnd`, if the process has said while it ended whose code that was. */
  onCulprit(culprit: Culprit): void;
  /** Called once, and later than the start, unless it was closed. `how`: as the end of a sentence; `cause`: of a failed start. */
  onEnd(reason: DeathReason, how: string, cause?: Error): void;
  /** Whether the log says already why processes do not start: what this one prints before it is ready is for who debugs, then. */
  isFailureLogged(): boolean;
  logger: Logger;
}

/** A process that executes graphs, and is watched. */
export interface GraphProcess {
  readonly id: number | undefined;
  /** Answers its questions at the moment. */
  readonly isResponsive: boolean;
  send(message: ToGraphProcess): void;
  /** Has it load the graphs, if it was started to wait for that. It may take as long as a start. */
  load(): void;
  /** At once. Reason and `how` are told with its end. */
  kill(reason: DeathReason, how: string): void;
  /** Resolves when it has ended. Nothing is executed there any more. */
  close(): Promise<void>;
}

/** For V8's young generation: with its own bound, 16, a process took 180 MiB after some hundred runs, with this one 145. */
const YOUNG_MEGABYTES = 4;
/** Sixty times what a start takes: an import that waits for something may have to do so for a while, but not keep its place. */
const START_SECONDS = 60;
const PING_MS = 1_000;
/** Questions without an answer, after which the process gets no new runs. */
const UNRESPONSIVE_AFTER = 2;
/** What a process may take to close its connections; then it is killed. */
const CLOSE_MS = 2_000;
/** The file descriptor that a graph process writes its log to; 0 to 2 are the usual ones, 3 is the pipe of `fork`. */
const LOG_DESCRIPTOR = 4;

type End = readonly [reason: DeathReason, how: string];
/** V8 ends a process whose heap is full by one of these. */
const SIGNALS_OF_V8 = new Set<NodeJS.Signals | null>(["SIGABRT", "SIGTRAP"]);
const endOf = (code: number | null, signal: NodeJS.Signals | null): End => {
  if (signal === null) return ["exit", `exited with ${code}`];
  return SIGNALS_OF_V8.has(signal)
    ? ["memory", `was ended by ${signal}, as with a full heap`]
    : ["signal", `was ended by ${signal}`];
};

/**
 * Resolves to the error instead if there is no process: ENOMEM is thrown; EMFILE and ENFILE are told later, by a child
 * that has no streams.
 */
const forkEntry = ({ entry, heapMegabytes }: GraphProcessOptions): ChildProcess | Promise<Error> => {
  try {
    // Its own options, not those of this process: the entry brings its loader, and a debugger listens on one port.
    const child = fork(entry, [], {
      execArgv: [`--max-old-space-size=${heapMegabytes}`, `--max-semi-space-size=${YOUNG_MEGABYTES}`],
      stdio: ["ignore", "pipe", "pipe", "ipc", "pipe", "pipe"],
    });
    if (child.pid !== undefined) return child;
    return new Promise((resolve) => child.once("error", resolve));
  } catch (error) {
    return Promise.resolve(error instanceof Error ? error : new Error(String(error)));
  }
};

/** Its owner tries again, as after any other end. */
const neverStarted = (failure: Promise<Error>, { onEnd }: GraphProcessOptions): GraphProcess => {
  let isClosing = false;
  void failure.then((cause) => {
    if (!isClosing) onEnd("start", "could not be started", cause);
  });
  return {
    id: undefined,
    isResponsive: false,
    send: () => undefined,
    load: () => undefined,
    kill: () => undefined,
    async close() {
      isClosing = true;
      await failure;
    },
  };
};

export const startGraphProcess = (options: GraphProcessOptions): GraphProcess => {
  const { setup, blockedSeconds, onMessage, onEnd } = options;
  const child = forkEntry(options);
  if (child instanceof Promise) return neverStarted(child, options);
  const logger = options.logger.child({ graph_process: child.pid });
  const streams = child.stdio as unknown as Readable[];
  const [, out, error] = streams;
  const log = streams[LOG_DESCRIPTOR];
  const exitReport = streams[EXIT_REPORT_DESCRIPTOR];
  if (out !== undefined && error !== undefined && log !== undefined)
    logOutput(logger, { out, error, log }, () => unanswered === undefined && options.isFailureLogged());
  if (exitReport !== undefined) readExitReport(exitReport, options.onCulprit);
  /** Undefined until it has loaded its graphs, which takes every turn of its loop for a while. */
  let unanswered: number | undefined;
  let killedBecause: End | undefined;
  let isClosing = false;
  let hasEnded = false;
  let resolveEnd = (): void => undefined;
  const ended = new Promise<void>((resolve) => (resolveEnd = resolve));

  const send = (message: ToGraphProcess): void => {
    // What can't be sent has no receiver any more; its end is told by `exit`.
    if (child.connected) child.send(message, () => undefined);
  };
  const kill = (...end: End): void => {
    killedBecause ??= end;
    child.kill("SIGKILL");
  };
  const end = (...seen: End): void => {
    if (hasEnded) return;
    hasEnded = true;
    clearInterval(pinging);
    clearTimeout(starting);
    resolveEnd();
    if (!isClosing) onEnd(...(killedBecause ?? seen));
  };
  // Counted by this loop's own turns: after one that stood still, the answers of the others are on their way.
  const pinging = setInterval(() => {
    if (unanswered === undefined) return;
    send({ kind: "ping" });
    if (blockedSeconds > 0 && unanswered * PING_MS > blockedSeconds * 1_000) {
      kill("blocked", `did not answer for ${blockedSeconds} seconds and was killed`);
    }
    unanswered += 1;
    if (unanswered === UNRESPONSIVE_AFTER) options.onUnresponsive();
  }, PING_MS);
  const killIfNotStarted = (): NodeJS.Timeout =>
    setTimeout(
      () => kill("start", `was killed: it did not load its graphs within ${START_SECONDS} seconds`),
      START_SECONDS * 1_000,
    );
  let starting = killIfNotStarted();
  let mustLoad = false;
  child.on("message", (message: unknown) => {
    // Whatever else the code of a graph finds to send is not for us.
    if (hasEnded || typeof message !== "object" || message === null || !("kind" in message)) return;
    const { kind } = message as FromGraphProcess;
    // It is asked nothing while it loads its graphs, or waits to be told so.
    if (kind === "prepared") {
      if (!mustLoad) clearTimeout(starting);
    } else if (kind !== "loaded" && kind !== "failed") {
      unanswered = 0;
      clearTimeout(starting);
    }
    onMessage(message as FromGraphProcess);
  });
  child.on("error", (cause) => {
    logger.error({ err: cause }, "a graph process could not be told something");
  });
  child.on("exit", (code, signal) => end(...endOf(code, signal)));
  send({ kind: "setup", setup });

  return {
    id: child.pid,
    get isResponsive() {
      return (unanswered ?? 0) < UNRESPONSIVE_AFTER;
    },
    send,
    load() {
      mustLoad = true;
      clearTimeout(starting);
      starting = killIfNotStarted();
      send({ kind: "load" });
    },
    kill,
    async close() {
      isClosing = true;
      // Nothing is open there that would have to be closed in order, and it may read this only in a while.
      if (unanswered === undefined) child.kill("SIGKILL");
      send({ kind: "close" });
      const timer = setTimeout(() => child.kill("SIGKILL"), CLOSE_MS);
      await ended;
      clearTimeout(timer);
    },
  };
};
