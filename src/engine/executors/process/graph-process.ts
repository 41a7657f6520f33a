import { fork, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { FromGraphProcess, GraphProcessSetup, ToGraphProcess } from "./messages.ts";

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
  /** The log has the reason of failed starts. Output before `ready` then goes to debug level. */
  isFailureLogged: boolean;
  logger: Logger;
}

export interface GraphProcess {
  readonly id: number | undefined;
  readonly isResponsive: boolean;
  send(message: ToGraphProcess): void;
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
const LINE_CHARACTERS_AT_MOST = 16_000;
/** A graph that prints without end waits for its pipe, instead of filling the main process's log. */
const BYTES_PER_SECOND = 2 * 1024 * 1024;

const readLines = (stream: Readable | undefined, onLine: (line: string) => void): void => {
  let line = "";
  let isCut = false;
  let read = 0;
  let since = performance.now();
  const take = (text: string): void => {
    line += text.slice(0, Math.max(0, LINE_CHARACTERS_AT_MOST - line.length));
    isCut ||= line.length >= LINE_CHARACTERS_AT_MOST;
  };
  const end = (): void => {
    if (line !== "") onLine(isCut ? `${line}… (cut)` : line);
    line = "";
    isCut = false;
  };
  stream?.setEncoding("utf8");
  stream?.on("data", (chunk: string) => {
    const [first = "", ...others] = chunk.split("\n");
    take(first);
    for (const other of others) {
      end();
      take(other);
    }
    read += chunk.length;
    const passedMs = performance.now() - since;
    if (passedMs > 1_000) {
      read = chunk.length;
      since = performance.now();
    } else if (read > BYTES_PER_SECOND) {
      stream.pause();
      setTimeout(() => stream.resume(), 1_000 - passedMs).unref();
    }
  });
  stream?.on("end", end);
  stream?.on("error", () => undefined);
};

const FATAL = 60;

/** Printed text becomes a field, so graphs can't forge log lines. */
const logOutput = (logger: Logger, streams: readonly Readable[], isRepeated: () => boolean): void => {
  const [, out, error] = streams;
  readLines(out, (text) => logger[isRepeated() ? "debug" : "info"]({ text }, "printed"));
  readLines(error, (text) => logger[isRepeated() ? "debug" : "warn"]({ text }, "printed"));
  // The process's own logger has made fields of errors.
  const passed = logger.child({}, { serializers: { err: (fields: unknown) => fields } });
  readLines(streams[LOG_DESCRIPTOR], (line) => {
    let fields: Record<string, unknown>;
    try {
      fields = JSON.parse(line) as Record<string, unknown>;
    } catch {
      return logger.warn({ text: line }, "printed");
    }
    const { level, time: _time, msg, ...others } = fields;
    // A graph process's fatal error does not end the main process.
    const name = level === FATAL ? "error" : (logger.levels.labels[Number(level)] ?? "info");
    passed[name as "info"](others, String(msg));
  });
};

/** V8 ends a process with a full heap by one of these. */
const SIGNALS_OF_V8 = new Set<NodeJS.Signals | null>(["SIGABRT", "SIGTRAP"]);
type End = readonly [reason: DeathReason, how: string, cause?: Error];
const endOf = (code: number | null, signal: NodeJS.Signals | null): End => {
  if (signal === null) return ["exit", `exited with ${code}`];
  return SIGNALS_OF_V8.has(signal)
    ? ["memory", `was ended by ${signal}, as with a full heap`]
    : ["signal", `was ended by ${signal}`];
};

/** Undefined if `fork` throws (ENOMEM). EMFILE and ENFILE arrive as events of a child without streams and pid. */
const forkEntry = (
  { entry, heapMegabytes }: GraphProcessOptions,
  onThrown: (error: Error) => void,
): ChildProcess | undefined => {
  try {
    // No inherited `execArgv`: the entry registers its own loader, and only one process can use a debugger's
    // port.
    return fork(entry, [], {
      execArgv: [`--max-old-space-size=${heapMegabytes}`, `--max-semi-space-size=${YOUNG_MEGABYTES}`],
      stdio: ["ignore", "pipe", "pipe", "ipc", "pipe"],
    });
  } catch (error) {
    queueMicrotask(() => onThrown(error as Error));
    return undefined;
  }
};

export const startGraphProcess = (options: GraphProcessOptions): GraphProcess => {
  const { setup, blockedSeconds, onMessage, onEnd } = options;
  let unanswered: number | undefined;
  let killedBecause: End | undefined;
  let isClosing = false;
  let hasExited = false;
  let resolveExited = (): void => undefined;
  const exited = new Promise<void>((resolve) => (resolveExited = resolve));

  const receiveExit = (...seen: End): void => {
    if (hasExited) return;
    hasExited = true;
    clearInterval(pinging);
    clearTimeout(starting);
    resolveExited();
    if (!isClosing) onEnd(...(killedBecause ?? seen));
  };
  const notStarted = (cause: Error): void => receiveExit("start", "could not be started", cause);
  const child = forkEntry(options, notStarted);
  const logger = options.logger.child({ graph_process: child?.pid });
  const send = (message: ToGraphProcess): void => {
    // A failed send has no receiver; `exit` follows.
    if (child?.connected === true) child.send(message, () => undefined);
  };
  const kill = (...end: End): void => {
    killedBecause ??= end;
    child?.kill("SIGKILL");
  };
  // Counts pings instead of time: if this loop was blocked, answers are still queued. A process that loads its graphs
  // gets none.
  const pinging = setInterval(() => {
    if (unanswered === undefined) return;
    send({ kind: "ping" });
    if (blockedSeconds > 0 && unanswered * PING_MS > blockedSeconds * 1_000) {
      kill("blocked", `did not answer for ${blockedSeconds} seconds and was killed`);
    }
    unanswered += 1;
  }, PING_MS);
  const starting = setTimeout(
    () => kill("start", `was killed: it did not load its graphs within ${START_SECONDS} seconds`),
    START_SECONDS * 1_000,
  );
  logOutput(
    logger,
    (child?.stdio ?? []) as unknown as Readable[],
    () => unanswered === undefined && options.isFailureLogged,
  );
  child?.on("message", (message: unknown) => {
    if (hasExited || typeof message !== "object" || message === null || !("kind" in message)) return;
    const received = message as FromGraphProcess;
    // `loaded` may come before `failed`, and a process without graphs answers no pings.
    if (received.kind !== "loaded" && received.kind !== "failed") {
      unanswered = 0;
      clearTimeout(starting);
    }
    onMessage(received);
  });
  child?.on("error", (cause) => {
    if (child.pid === undefined) notStarted(cause);
    else logger.error({ err: cause }, "a message could not be sent to a graph process");
  });
  child?.on("exit", (code, signal) => receiveExit(...endOf(code, signal)));
  send({ kind: "setup", setup });

  return {
    id: child?.pid,
    get isResponsive() {
      return (unanswered ?? 0) < UNRESPONSIVE_AFTER;
    },
    send,
    kill,
    async close() {
      isClosing = true;
      if (hasExited) return;
      // While the graphs load, the process would read the message late.
      if (unanswered === undefined) child?.kill("SIGKILL");
      else send({ kind: "close" });
      const timer = setTimeout(() => child?.kill("SIGKILL"), CLOSE_MS);
      await exited;
      clearTimeout(timer);
    },
  };
};
