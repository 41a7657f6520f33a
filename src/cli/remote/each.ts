import { StartError } from "../../platform/domain/errors.ts";
import { NotDoneError } from "../run-command.ts";
import { idArgument } from "./server.ts";

/** Ids, as the last argument of a command. */
export const idsArgument = (text: string, before: string[] | undefined): string[] => [
  ...(before ?? []),
  idArgument(text),
];

interface Action {
  /** The command, as its refusals are headed. */
  command: "runs" | "threads";
  /** What becomes of each, e.g. `cancelled`; the field of the answer, too. */
  done: string;
  /** What one is called in a sentence, e.g. `Run`. */
  noun: string;
  json: boolean;
  /** Throws StartError for one that is refused: the others are done all the same. */
  act(id: string): Promise<unknown>;
}

/** Where the answer goes, and what a person reads beside it. */
interface Output {
  write(text: string): void;
  note(text: string): void;
}

/** Does the same to each id, and says of each what became of it. Throws NotDoneError if one was refused. */
export const forEachId = async (
  ids: readonly string[],
  { command, done, noun, json, act }: Action,
  { write, note }: Output,
): Promise<void> => {
  const failed: string[] = [];
  for (const id of ids) {
    try {
      await act(id);
      if (!json) note(`${noun} ${id} is ${done}.\n`);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      failed.push(id);
      note(`threadloom ${command}: ${error.message}\n`);
    }
  }
  if (json) write(`${JSON.stringify({ [done]: ids.filter((id) => !failed.includes(id)), failed })}\n`);
  if (failed.length > 0) throw new NotDoneError();
};
