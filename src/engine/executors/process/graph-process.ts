import { fork, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { FromGraphProcess, GraphProcessSetup, ToGraphProcess } from "./messages.ts";
import { logOutput } from "./output.ts";

/**
 * `signal`: from any sender; `blocked`: killed because it did not answer; `unstopped`: killed because a run
 * ignored `stop`; `memory`: full heap, or killed above the limit; `start`: never became ready.
 */
export type DeathReason = "exit" | "signal" | "blocked" | "unstopped" | "memory" | "start";

export interface GraphProcessOptions {
  /** A JavaScript program, which registers the loader for TypeScript itself. */
  entry: URL;
  setup: GraphProcessSetup;
  heapMegabytes: number;
  blockedSeconds: number;
  onMessage(message: FromGraphProcess): void;
  /**
   * Called once, after this function has returned, unless the process was closed. `how`: the end of a
   * sentence; `cause`: of a failed start.
   */
  onEnd(reason: DeathReason, how: string, cause?: Error): void;
  /** True if the log has the reason of failed starts. Output before `ready` then goes to debug level. */
  isFailureLogged(): boolean;
  logger: Logger;
}

export interface GraphProcess {
  readonly id: number | undefined;
  readonly isResponsive: boolean;
  send(message: ToGraphProcess): void;
  /** Loads the graphs in a prepared process, within START_SECONDS. */
  load(): void;
  /** `onEnd` gets reason and `how`. */
  kill(reason: DeathReason, how: string): void;
  close(): Promise<void>;
}

/** A process took 145 MiB after some hundred runs, and 180 with V8's default of 16. */
const YOUNG_MEGABYTES = 4;
/** Sixty times a usual start: an import may wait for something. */
const START_SECONDS = 60;
const PING_MS = 1_000;
const UNRESPONSIVE_AFTER = 2;
/** More than the sending of the last traces takes (graphs/langsmith.ts). */
const CLOSE_MS = 4_000;
const LOG_DESCRIPTOR = 4;

type End = readonly [reason: DeathReason, how: string];
/** V8 ends a process with a full heap by one of these. */
const SIGNALS_OF_V8 = new Set<NodeJS.Signals | null>(["SIGABRT", "SIGTRAP"]);
const endOf = (code: number | null, signal: NodeJS.Signals | null): End => {
  if (signal === null) return ["exit", `exited with ${code}`];
  return SIGNALS_OF_V8.has(signal)
    ? ["memory", `was ended by ${signal}, as with a full heap`]
    : ["signal", `was ended by ${signal}`];
};

/**
 * A failed fork resolves to its error: `fork` throws ENOMEM, but EMFILE and ENFILE arrive as events of a
 * child without streams.
 */
const forkEntry = ({ entry, heapMegabytes }: GraphProcessOptions): ChildProcess | Promise<Error> => {
  try {
    // No inherited `execArgv`: the entry registers its own loader, and only one process can use a debugger's
    // port.
    const child = fork(entry, [], {
      execArgv: [`--max-old-space-size=${heapMegabytes}`, `--max-semi-space-size=${YOUNG_MEGABYTES}`],
      stdio: ["ignore", "pipe", "pipe", "ipc", "pipe"],
    });
    if (child.pid !== undefined) return child;
    return new Promise((resolve) => child.once("error", resolve));
  } catch (error) {
    return Promise.resolve(error instanceof Error ? error : new Error(String(error)));
  }
};

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
  /** Undefined while the process loads its graphs or waits for `load`: no pings then. */
  let unanswered: number | undefined;
  if (out !== undefined && error !== undefined && log !== undefined)
    logOutput(logger, { out, error, log }, () => unanswered === undefined && options.isFailureLogged());
  let killedBecause: End | undefined;
  let isClosing = false;
  let hasExited = false;
  let resolveExited = (): void => undefined;
  const exited = new Promise<void>((resolve) => (resolveExited = resolve));

  const send = (message: ToGraphProcess): void => {
    // A failed send has no receiver; `exit` follows.
    if (child.connected) child.send(message, () => undefined);
  };
  const kill = (...end: End): void => {
    killedBecause ??= end;
    child.kill("SIGKILL");
  };
  const receiveExit = (...seen: End): void => {
    if (hasExited) return;
    hasExited = true;
    clearInterval(pinging);
    clearTimeout(starting);
    resolveExited();
    if (!isClosing) onEnd(...(killedBecause ?? seen));
  };
  // Counts pings instead of time: if this loop was blocked, answers are still queued.
  const pinging = setInterval(() => {
    if (unanswered === undefined) return;
    send({ kind: "ping" });
    if (blockedSeconds > 0 && unanswered * PING_MS > blockedSeconds * 1_000) {
      kill("blocked", `did not answer for ${blockedSeconds} seconds and was killed`);
    }
    unanswered += 1;
  }, PING_MS);
  const killIfNotStarted = (): NodeJS.Timeout =>
    setTimeout(
      () => kill("start", `was killed: it did not load its graphs within ${START_SECONDS} seconds`),
      START_SECONDS * 1_000,
    );
  let starting = killIfNotStarted();
  let mustLoad = false;
  child.on("message", (message: unknown) => {
    if (hasExited || typeof message !== "object" || message === null || !("kind" in message)) return;
    const { kind } = message as FromGraphProcess;
    if (kind === "prepared") {
      if (!mustLoad) clearTimeout(starting);
    } else if (kind !== "loaded" && kind !== "failed") {
      // `loaded` may come before `failed`, and a process without graphs answers no pings.
      unanswered = 0;
      clearTimeout(starting);
    }
    onMessage(message as FromGraphProcess);
  });
  child.on("error", (cause) => {
    logger.error({ err: cause }, "a message could not be sent to a graph process");
  });
  child.on("exit", (code, signal) => receiveExit(...endOf(code, signal)));
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
      // While the graphs load, the process would read the message late.
      if (unanswered === undefined) child.kill("SIGKILL");
      else send({ kind: "close" });
      const timer = setTimeout(() => child.kill("SIGKILL"), CLOSE_MS);
      await exited;
      clearTimeout(timer);
    },
  };
};
