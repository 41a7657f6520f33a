import type { DestinationStream } from "pino";
import { prettyFactory } from "pino-pretty";
import { openTerminal } from "./terminal.ts";

/** What a person looks for, so it stands beside the message, before the ids. */
const FIRST_FIELDS = ["status", "text"];

/** A graph chooses what it prints: nothing of it may begin a line or steer the terminal. */
const harmless = (text: string): string =>
  text.replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1));

/** A colour, or a control character that is no line break and no tab. */
// eslint-disable-next-line no-control-regex -- it is what terminals read colours by
const COLOUR_OR_CONTROL = /\u001b\[[\d;]*m|(?![\n\t])\p{Cc}/gu;

/** What a graph printed, with its lines and colours. Nothing else of it steers the terminal. */
const printedText = (text: string): string =>
  text.replace(COLOUR_OR_CONTROL, (found) => (found.length > 1 ? found : harmless(found)));

/** The text of a line that holds what a graph printed; undefined for any other line. */
const printedIn = (line: string): string | undefined => {
  if (!line.includes('"msg":"printed"')) return undefined;
  const { msg, text } = JSON.parse(line) as Record<string, unknown>;
  return msg === "printed" && typeof text === "string" ? text : undefined;
};

export interface PrettyOptions {
  /** Writes what a graph printed without time, level and ids. A caller's text may then look like a line of the log. */
  printsPlainly?: boolean;
}

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
export const prettyLines = (
  destination?: DestinationStream,
  { printsPlainly = false }: PrettyOptions = {},
): DestinationStream => {
  const terminal = destination ?? openTerminal();
  const toLine = prettyFactory({
    ignore: ["pid", "hostname", ...FIRST_FIELDS].join(","),
    translateTime: "SYS:HH:MM:ss",
    singleLine: true,
    messageFormat: messageOf,
  });
  return {
    write(line) {
      const printed = printsPlainly ? printedIn(line) : undefined;
      terminal.write(printed === undefined ? toLine(line) : `${printedText(printed)}\n`);
    },
  };
};
