import { StartError } from "../../platform/domain/errors.ts";
import { NotDoneError } from "../run-command.ts";
import { idArgument } from "./server.ts";

export const idsArgument = (text: string, before: string[] | undefined): string[] => [
  ...(before ?? []),
  idArgument(text),
];

interface Action {
  command: "runs" | "threads";
  /** E.g. `cancelled`; also the name of the field in JSON. */
  done: string;
  /** E.g. `Run`. */
  noun: string;
  json: boolean;
  act(id: string): Promise<unknown>;
}

interface Output {
  write(text: string): void;
  note(text: string): void;
}

/** A StartError for one id does not stop the others. @throws NotDoneError at the end */
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
