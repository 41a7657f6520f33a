import {
  isContention,
  isPassing,
  mayHaveBeenCommitted,
  retryPassing,
} from "../../../platform/database/passing-faults.ts";
import { sqlState, UNIQUE_VIOLATION } from "../../../platform/domain/errors.ts";

/** How long a caller waits to hear whether its run was stored, when the database went away meanwhile. */
const UNCERTAIN_SECONDS = 10;

/**
 * A connection that dies between commit and answer leaves open whether something is stored. Its caller would be told
 * 503 and ask again, and it would be there twice; so it is looked for until the database answers, and stored then if
 * it is not there. `store` is told whether it is called again. A database that certainly took nothing is a 503 at once,
 * unless it only was too busy with others.
 */
export const storeOnce = async <Stored>(
  find: () => Promise<Stored | undefined>,
  store: (isRetry: boolean) => Promise<Stored>,
): Promise<Stored> =>
  await retryPassing(async (isRetry) => (isRetry ? await find() : undefined) ?? (await store(isRetry)), {
    forMs: UNCERTAIN_SECONDS * 1_000,
    after(error, isRetry) {
      // Stored by the try before, at the same moment: it is found by the next.
      const exists = isRetry && sqlState(error) === UNIQUE_VIOLATION;
      return exists || isContention(error) || mayHaveBeenCommitted(error) || (isRetry && isPassing(error));
    },
  });
