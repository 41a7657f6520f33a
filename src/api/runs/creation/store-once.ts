import {
  isContention,
  isPassing,
  mayHaveBeenCommitted,
  retryPassing,
} from "../../../platform/database/passing-faults.ts";
import { sqlState, UNIQUE_VIOLATION } from "../../../platform/domain/errors.ts";

const UNCERTAIN_SECONDS = 10;

/**
 * After a lost connection, a 503 could make the client store a second row, so `storeOnce` retries. If certainly nothing
 * was stored, the error is thrown at once, except a conflict of transactions.
 */
export const storeOnce = async <Stored>(
  find: () => Promise<Stored | undefined>,
  store: (isRetry: boolean) => Promise<Stored>,
): Promise<Stored> =>
  await retryPassing(async (isRetry) => (isRetry ? await find() : undefined) ?? (await store(isRetry)), {
    forMs: UNCERTAIN_SECONDS * 1_000,
    after(error, isRetry) {
      // The earlier try was committed meanwhile.
      const exists = isRetry && sqlState(error) === UNIQUE_VIOLATION;
      return exists || isContention(error) || mayHaveBeenCommitted(error) || (isRetry && isPassing(error));
    },
  });
