import { writeSync } from "node:fs";
import type { Readable } from "node:stream";
import type { Culprit } from "./messages.ts";
import { readLines } from "./output.ts";

/**
 * The pipe for what a graph process says while it ends. Nothing else goes over it: what it has sent over the pipe of `fork`
 * may be megabytes that this pipe does not take any more, and what would be sent after them is lost with the process.
 */
export const EXIT_REPORT_DESCRIPTOR = 5;

/** With what else the line holds, a fraction of what a pipe takes at once and of what is read of a line. */
const HOW_CHARACTERS_AT_MOST = 2_000;

/** Names whose code ends this process. Returns when it is written; what nobody reads any more is dropped. */
export const writeExitReport = (culprit: Culprit): void => {
  const how = culprit.how.slice(0, HOW_CHARACTERS_AT_MOST).toWellFormed();
  try {
    writeSync(EXIT_REPORT_DESCRIPTOR, `${JSON.stringify({ ...culprit, how })}\n`);
  } catch {
    // The main process is gone, and with it who would want to know.
  }
};

/** Calls back with what a process says while it ends, before the `exit` event of the process. */
export const readExitReport = (pipe: Readable, onCulprit: (culprit: Culprit) => void): void =>
  readLines(pipe, (line) => {
    let report: unknown;
    try {
      report = JSON.parse(line);
    } catch {
      return;
    }
    // Whatever else the code of a graph finds to write there is not for us.
    if (typeof report === "object" && report !== null && "id" in report && "how" in report)
      onCulprit(report as Culprit);
  });
