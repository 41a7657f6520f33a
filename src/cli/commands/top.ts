import { Command, InvalidArgumentError } from "commander";
import { setTimeout as pause } from "node:timers/promises";
import { StartError } from "../../platform/domain/errors.ts";
import { onServer, remoteServer, type ServerFlags } from "../remote/server.ts";
import { readTop, topText, type Snapshot } from "../runs/top.ts";
import type { CreateCommand } from "./command.ts";

const EXAMPLES = `
Examples:
  $ threadloom top
  $ threadloom top --url https://agents.example.com --limit 40
  $ threadloom top --json

Calls a running server's API: --url and --api-key, or THREADLOOM_URL and THREADLOOM_API_KEY.
If the output is no terminal, and with --json, it prints once. The longest running and waiting runs come first.`;

const REFRESH_MS = 2_000;
const ANSWER_MS = 10_000;
const LIMIT_AT_MOST = 100;
/** Another screen keeps the terminal's history clean. */
const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const TO_TOP = "\u001b[H";
const ERASE_LINE_END = "\u001b[K";
const ERASE_BELOW = "\u001b[J";

const limitArgument = (text: string): number => {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= LIMIT_AT_MOST) return number;
  throw new InvalidArgumentError(`Use a number from 1 to ${LIMIT_AT_MOST}.`);
};

const frame = (text: string): string =>
  `${TO_TOP}${text.replaceAll("\n", `${ERASE_LINE_END}\n`)}${ERASE_BELOW}`;

export const createTop: CreateCommand = (surroundings) => {
  const { write, environment, terminal, unread, stopping } = surroundings;

  /** Undefined after `stopped`. */
  const read = async (
    { limit, ...flags }: ServerFlags & { limit: number },
    stopped: AbortSignal,
  ): Promise<Snapshot | undefined> => {
    // One for each refresh: `AbortSignal.any` on a signal that lives for days would keep memory.
    const refresh = new AbortController();
    const end = (): void => refresh.abort();
    const late = setTimeout(end, ANSWER_MS);
    stopped.addEventListener("abort", end);
    try {
      return await readTop(remoteServer(flags, environment, refresh.signal), limit);
    } catch (error) {
      if (stopped.aborted) return undefined;
      if (refresh.signal.aborted)
        throw new StartError(`The server did not answer within ${ANSWER_MS / 1_000} s.`, { cause: error });
      throw error;
    } finally {
      clearTimeout(late);
      stopped.removeEventListener("abort", end);
    }
  };

  return onServer(new Command("top"))
    .description("Shows running and waiting runs of a running server, again every two seconds until Ctrl-C.")
    .option("--limit <number>", "how many runs at most", limitArgument, 20)
    .addHelpText("after", EXAMPLES)
    .action(async (flags: ServerFlags & { limit: number }) => {
      const stopped = AbortSignal.any([unread, stopping()]);
      let last = await read(flags, stopped);
      if (last === undefined) return;
      if (flags.json) return write(`${JSON.stringify(last)}\n`);
      if (!terminal) return write(topText(last, {}));
      write(ENTER);
      try {
        for (let remark = ""; !stopped.aborted;) {
          write(frame(topText(last, surroundings, remark)));
          await pause(REFRESH_MS, undefined, { signal: stopped }).catch(() => undefined);
          if (stopped.aborted) break;
          try {
            last = (await read(flags, stopped)) ?? last;
            remark = "";
          } catch (error) {
            if (!(error instanceof StartError)) throw error;
            remark = error.message;
          }
        }
      } finally {
        write(LEAVE);
      }
    });
};
