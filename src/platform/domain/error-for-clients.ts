import { sqlState, StateStorageError } from "./errors.ts";
import { describeThrown } from "../lib/thrown.ts";

/** PostgreSQL's messages name tables and statements, which only the log may show. */
const isFromDatabase = (error: unknown): boolean =>
  sqlState(error) !== undefined && "routine" in (error as Error);

/** LangGraph (1.4.18) calls a run's input by the name of its first node, which callers do not know. */
const OF_INPUT = /^(?:Expected node "__start__"|Received no input writes for "__start__")/;

const shown = (error: unknown): { error: string; message: string } => {
  const { name, message } = describeThrown(error);
  return {
    error: name,
    message: OF_INPUT.test(message) ? `'input' does not fit the graph: ${message}` : message,
  };
};

export const errorForClients = (error: unknown): { error: string; message: string } =>
  error instanceof StateStorageError
    ? {
        error: "StateStorageError",
        message: "The state of the thread could not be read or stored; the server's log says why.",
      }
    : isFromDatabase(error)
      ? {
          error: "DatabaseError",
          message: "A database refused the run's statement; the server's log says why.",
        }
      : shown(error);
