import type { ServerResponse } from "node:http";
import { CallerGoneError } from "../domain/errors.ts";

/**
 * Aborts, with a `CallerGoneError` as its reason, when the connection closes before the answer has been sent. Work
 * that nobody waits for any more ends then.
 */
export const callerGone = (response: ServerResponse): AbortSignal => {
  const controller = new AbortController();
  const onClose = (): void => {
    if (!response.writableFinished) controller.abort(new CallerGoneError());
  };
  if (response.destroyed) onClose();
  else response.once("close", onClose);
  return controller.signal;
};
