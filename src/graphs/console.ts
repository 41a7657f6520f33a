import { Console } from "node:console";
import { Writable } from "node:stream";
import type { Logger } from "../platform/lib/logger.ts";
import { logOrigin } from "./log-origin.ts";

/** The methods whose severity is not that of `console.log`. */
const SEVERITIES = {
  debug: "debug",
  trace: "debug",
  warn: "warn",
  error: "error",
  assert: "error",
} as const;

/** What Node prints of its own, as of a function that is deprecated: by `console.error`, and nothing has failed. */
const WARNING_OF_NODE = /^\(node:\d+\) /;

type Severity = "info" | (typeof SEVERITIES)[keyof typeof SEVERITIES];

/**
 * A console that writes into the server's log: each call is one line of it, whose field `text` holds what was printed,
 * with the run and the node. Printed as it is, a caller's text with a line break would forge lines of the log.
 */
export const createLogConsole = (logger: Logger): Console => {
  const consoleOf = (severity: Severity): Console => {
    const stream = new Writable({
      decodeStrings: false,
      write(text: string, _encoding, done) {
        const level = severity === "error" && WARNING_OF_NODE.test(text) ? "warn" : severity;
        if (logger.isLevelEnabled(level)) {
          logger[level]({ ...logOrigin(), text: text.replace(/\n$/, "") }, "printed");
        }
        done();
      },
    });
    return new Console({ stdout: stream, stderr: stream });
  };
  const logConsole = consoleOf("info");
  for (const severity of new Set(Object.values(SEVERITIES))) {
    const other = consoleOf(severity);
    for (const [method, its] of Object.entries(SEVERITIES)) {
      if (its === severity) Reflect.set(logConsole, method, Reflect.get(other, method));
    }
  }
  return logConsole;
};
