import type { DestinationStream } from "pino";
import { prettyFactory } from "pino-pretty";
import { openTerminal } from "./terminal.ts";

/** What a person looks for, so it stands beside the message, before the ids. */
const FIRST_FIELDS = ["status", "text"];

/** A graph chooses what it prints: nothing of it may begin a line or steer the terminal. */
const harmless = (text: string): string =>
  text.replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1));

/** "run ended: success", 'printed "hello"'. */
const messageOf = (line: Record<string, unknown>, messageKey: string): string => {
  const { [messageKey]: message, status, text } = line;
  return [
    harmless(String(message ?? "")),
    status === undefined ? "" : `: ${harmless(typeof status === "string" ? status : JSON.stringify(status))}`,
    text === undefined ? "" : ` ${harmless(JSON.stringify(text))}`,
  ].join("");
};

/**
 * Lines for a person at a terminal: each is one line there, its fields behind the message, and only an error's stack takes
 * more. Written at once and in this process, so that the last words before an exit are not lost. A file apart from
 * logger.ts, because a graph process needs no pino-pretty.
 */
export const prettyLines = (destination?: DestinationStream): DestinationStream => {
  const terminal = destination ?? openTerminal();
  const toLine = prettyFactory({
    ignore: ["pid", "hostname", ...FIRST_FIELDS].join(","),
    translateTime: "SYS:HH:MM:ss",
    singleLine: true,
    messageFormat: messageOf,
  });
  return { write: (line) => terminal.write(toLine(line)) };
};
