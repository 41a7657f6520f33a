import { isPassing } from "../../../platform/database/passing-faults.ts";
import {
  EncryptionError,
  ProjectCodeError,
  sqlState,
  StateStorageError,
  ThreadloomError,
} from "../../../platform/domain/errors.ts";

/** Errors whose messages may be logged. */
const isOurs = (error: unknown): boolean =>
  error instanceof ThreadloomError ||
  error instanceof StateStorageError ||
  error instanceof EncryptionError ||
  isPassing(error) ||
  (sqlState(error) !== undefined && "severity" in (error as Error));

/** Errors of the graph become `ProjectCodeError`, so that the log omits their messages. */
export const byGraphCode = async <Result>(what: string, work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work();
  } catch (error) {
    throw isOurs(error) ? error : new ProjectCodeError(what, { cause: error });
  }
};
