import { Console } from "node:console";
import { Writable } from "node:stream";
import type { Logger } from "../platform/lib/logger.ts";
import { logOrigin } from "./log-origin.ts";

const SEVERITIES = {
  debug: "debug",
  trace: "debug",
  warn: "warn",
  error: "error",
  assert: "error",
} as const;

/** Node prints warnings (e.g. deprecations) with `console.error`. */
const WARNING_OF_NODE = /^\(node:\d+\) /;

type Severity = "info" | (typeof SEVERITIES)[keyof typeof SEVERITIES];

/** Writes one log line per call, because text of a caller could otherwise forge log lines. */
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
