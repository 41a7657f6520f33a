import type { ServerResponse } from "node:http";
import { CallerGoneError } from "../platform/domain/errors.ts";

/** One listener for each response: authentication, an application around the API and each part of a long answer ask for it. */
const known = new WeakMap<ServerResponse, AbortSignal>();

/**
 * Aborts, with a `CallerGoneError` as its reason, when the connection closes before the answer has been sent. Work
 * that nobody waits for any more ends then. `lost`: aborts it with its own reason, too.
 */
export const callerGone = (response: ServerResponse, lost?: AbortSignal): AbortSignal => {
  const shared = known.get(response);
  if (shared !== undefined && lost === undefined) return shared;
  const controller = new AbortController();
  if (lost === undefined) known.set(response, controller.signal);
  // AbortSignal.any took longer than all else that is done here.
  lost?.addEventListener("abort", () => controller.abort(lost.reason));
  const onClose = (): void => {
    if (!response.writableFinished) controller.abort(new CallerGoneError());
  };
  if (response.destroyed) onClose();
  else if (shared !== undefined) shared.addEventListener("abort", onClose);
  else response.once("close", onClose);
  return controller.signal;
};
