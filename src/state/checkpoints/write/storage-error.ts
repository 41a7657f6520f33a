import { isPassing } from "../../../platform/database/passing-faults.ts";
import {
  LeaseLostError,
  sqlState,
  StateLostError,
  StateStorageError,
  ThreadloomError,
} from "../../../platform/domain/errors.ts";

/**
 * What went wrong in this room, as those around it are to take it: refusals, lost leases, lost state and what the
 * database says stay as they are; everything else is a fault of ours, whatever class it has, and none of the graph's.
 */
export const asStorageError = (error: unknown): unknown =>
  error instanceof ThreadloomError ||
  error instanceof LeaseLostError ||
  error instanceof StateLostError ||
  error instanceof StateStorageError ||
  sqlState(error) !== undefined ||
  isPassing(error)
    ? error
    : new StateStorageError("The state of a thread could not be read or stored.", { cause: error });
