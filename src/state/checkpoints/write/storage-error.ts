import { isPassing } from "../../../platform/database/passing-faults.ts";
import {
  LeaseLostError,
  sqlState,
  StateLostError,
  StateStorageError,
  ThreadloomError,
} from "../../../platform/domain/errors.ts";

/**
 * Returns refusals, lost leases, lost state and database errors unchanged. Every other error is a fault of this server,
 * not of the graph.
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
