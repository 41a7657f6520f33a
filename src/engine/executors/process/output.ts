import type { Readable } from "node:stream";
import type { Logger } from "../../../platform/lib/logger.ts";
import { restoreError, type DescribedError } from "./described-error.ts";

const LINE_CHARACTERS_AT_MOST = 16_000;
/** A graph that prints without end waits for its pipe, instead of filling the main process's log. */
const BYTES_PER_SECOND = 2 * 1024 * 1024;

export const readLines = (stream: Readable, onLine: (line: string) => void): void => {
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
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
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
  stream.on("end", end);
  stream.on("error", () => undefined);
};

const LEVELS: ReadonlyMap<unknown, "trace" | "debug" | "info" | "warn" | "error"> = new Map([
  [10, "trace"],
  [20, "debug"],
  [30, "info"],
  [40, "warn"],
  [50, "error"],
  // A graph process's fatal error does not end the main process.
  [60, "error"],
]);

interface LoggedError extends Partial<Omit<DescribedError, "cause">> {
  type?: string;
  cause?: LoggedError;
}

const errorOf = ({ type, message, stack, code, cause }: LoggedError): DescribedError => ({
  kind: "other",
  name: String(type),
  message: String(message),
  stack,
  code,
  cause: typeof cause === "object" ? errorOf(cause) : undefined,
});

const passOn = (logger: Logger, line: string): void => {
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return logger.warn({ text: line }, "printed");
  }
  const { level, time: _time, msg, err, ...others } = fields;
  const named = typeof err === "object" && err !== null ? { err: restoreError(errorOf(err)) } : {};
  logger[LEVELS.get(level) ?? "info"]({ ...others, ...named }, String(msg));
};

/** Printed text becomes a field, so graphs can't forge log lines. */
export const logOutput = (
  logger: Logger,
  streams: { out: Readable; error: Readable; log: Readable },
  isRepeated: () => boolean,
): void => {
  readLines(streams.out, (text) => logger[isRepeated() ? "debug" : "info"]({ text }, "printed"));
  readLines(streams.error, (text) => logger[isRepeated() ? "debug" : "warn"]({ text }, "printed"));
  readLines(streams.log, (line) => passOn(logger, line));
};
