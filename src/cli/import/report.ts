import type { ImportReport } from "./importer.ts";
import type { SourceTotals } from "./source.ts";
import { IMPORTED_ID } from "./target.ts";

const LISTED_AT_MOST = 20;
const number = new Intl.NumberFormat("en-US");
const count = (of: number, noun: string): string => `${number.format(of)} ${noun}${of === 1 ? "" : "s"}`;

const listed = (title: string, threads: readonly { threadId: string; reason: string }[]): string[] => {
  if (threads.length === 0) return [];
  const rest = threads.length - LISTED_AT_MOST;
  return [
    `${count(threads.length, "thread")} ${title}:`,
    ...threads.slice(0, LISTED_AT_MOST).map(({ threadId, reason }) => `  ${threadId}: ${reason}`),
    ...(rest > 0 ? [`  and ${number.format(rest)} more`] : []),
  ];
};

export const reportText = (report: ImportReport): string => {
  const { copied, already, checkpoints, seconds, renamed } = report;
  const rate = seconds > 0 ? `, ${number.format(Math.round(copied / seconds))} threads/s` : "";
  const lines = [
    `${count(copied, "thread")} copied (${count(checkpoints, "checkpoint")}) in ${seconds.toFixed(1)} s${rate}; ` +
      `${number.format(already)} already here.`,
    ...listed("left alone", report.skipped),
    ...listed("could not be copied", report.failed),
  ];
  if (renamed > 0) {
    lines.push(
      `${count(renamed, "thread")} had an id that is no UUID. Here they have one that is made from it (UUID version 5);` +
        ` the original is in their metadata, for a search with {"metadata": {"${IMPORTED_ID}": "<id>"}}.`,
    );
  }
  if (report.stopped) lines.push("Stopped. Run it again to go on.");
  return `${lines.join("\n")}\n`;
};

export const totalsText = ({ threads, checkpoints, writes }: SourceTotals): string =>
  `The source has ${count(threads, "thread")} with ${count(checkpoints, "checkpoint")} and ` +
  `${count(writes, "pending write")}.\n`;
