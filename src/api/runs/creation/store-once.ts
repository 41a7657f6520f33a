import {
  isContention,
  isPassing,
  mayHaveBeenCommitted,
  retryPassing,
} from "../../../platform/database/passing-faults.ts";
import { sqlState, UNIQUE_VIOLATION } from "../../../platform/domain/errors.ts";

const UNCERTAIN_SECONDS = 10;

/**
 * If a connection dies between commit and answer, the run may be stored. A 503 would make the client repeat the request
 * and store it twice, so this reads until the database answers. If the database certainly took nothing, the 503 comes
 * at once, except after a conflict of transactions.
 */
export const storeOnce = async <Stored>(
  find: () => Promise<Stored | undefined>,
  store: (isRetry: boolean) => Promise<Stored>,
): Promise<Stored> =>
  await retryPassing(async (isRetry) => (isRetry ? await find() : undefined) ?? (await store(isRetry)), {
    forMs: UNCERTAIN_SECONDS * 1_000,
    after(error, isRetry) {
      // The earlier try was committed at this moment; the next read finds the run.
      const exists = isRetry && sqlState(error) === UNIQUE_VIOLATION;
      return exists || isContention(error) || mayHaveBeenCommitted(error) || (isRetry && isPassing(error));
    },
  });
