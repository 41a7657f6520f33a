import type { DestinationStream } from "pino";
import { prettyFactory } from "pino-pretty";
import { openTerminal } from "./terminal.ts";

const FIRST_FIELDS = ["status", "text"];

/** Text printed by a graph must not begin a line or control the terminal. */
const harmless = (text: string): string =>
  text.replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1));

// eslint-disable-next-line no-control-regex -- terminals read colours by it
const COLOUR_OR_CONTROL = /\u001b\[[\d;]*m|(?![\n\t])\p{Cc}/gu;

/** Keeps line breaks and colours. */
const printedText = (text: string): string =>
  text.replace(COLOUR_OR_CONTROL, (found) => (found.length > 1 ? found : harmless(found)));

const printedIn = (line: string): string | undefined => {
  if (!line.includes('"msg":"printed"')) return undefined;
  const { msg, text } = JSON.parse(line) as Record<string, unknown>;
  return msg === "printed" && typeof text === "string" ? text : undefined;
};

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
 * Synchronous, so that the last lines before an exit are not lost; not in logger.ts, because graph processes must not
 * load pino-pretty. With `printsPlainly`, a graph's text may resemble a log line.
 */
export const prettyLines = (
  destination?: DestinationStream,
  { printsPlainly = false } = {},
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
