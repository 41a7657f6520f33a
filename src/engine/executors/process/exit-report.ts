import { writeSync } from "node:fs";
import type { Readable } from "node:stream";
import type { Culprit } from "./messages.ts";
import { readLines } from "./output.ts";

/** A pipe of its own: messages still queued in the pipe of `fork` are lost when the process ends. */
export const EXIT_REPORT_DESCRIPTOR = 5;

const HOW_CHARACTERS_AT_MOST = 2_000;

export const writeExitReport = (culprit: Culprit): void => {
  const how = culprit.how.slice(0, HOW_CHARACTERS_AT_MOST).toWellFormed();
  try {
    writeSync(EXIT_REPORT_DESCRIPTOR, `${JSON.stringify({ ...culprit, how })}\n`);
  } catch {
    // The main process is gone.
  }
};

/** Calls back before the `exit` event of the process. */
export const readExitReport = (pipe: Readable, onCulprit: (culprit: Culprit) => void): void =>
  readLines(pipe, (line) => {
    let report: unknown;
    try {
      report = JSON.parse(line);
    } catch {
      return;
    }
    // Graph code may write other text here.
    if (typeof report === "object" && report !== null && "id" in report && "how" in report)
      onCulprit(report as Culprit);
  });
