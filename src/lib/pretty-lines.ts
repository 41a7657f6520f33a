import { destination as openDestination, type DestinationStream } from "pino";
import { prettyFactory } from "pino-pretty";

/** Its file descriptor. */
const STANDARD_OUTPUT = 1;

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

/** A terminal that was closed takes no more; that must not end the process, which has runs to hand back. */
export const openTerminal = (descriptor = STANDARD_OUTPUT): DestinationStream => {
  const output = openDestination({ dest: descriptor, sync: true });
  let isGone = false;
  output.on("error", () => (isGone = true));
  return { write: (line) => isGone || output.write(line) };
};

/**
 * Lines for a person at a terminal: each is one line there, its fields behind the message, and only an error's stack takes
 * more. Written at once and in this process, so that the last words before an exit are not lost.
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
