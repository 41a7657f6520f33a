import type { ServerResponse } from "node:http";
import { CallerGoneError } from "../platform/domain/errors.ts";

/** One listener per response: authentication, the custom application and each part of a long answer call this. */
const known = new WeakMap<ServerResponse, AbortSignal>();

/**
 * Aborts with a `CallerGoneError` when the connection closes before the answer is sent. `lost` also aborts the signal,
 * with its own reason.
 */
export const callerGone = (response: ServerResponse, lost?: AbortSignal): AbortSignal => {
  const shared = known.get(response);
  if (shared !== undefined && lost === undefined) return shared;
  const controller = new AbortController();
  if (lost === undefined) known.set(response, controller.signal);
  // AbortSignal.any took longer than everything else in this function.
  lost?.addEventListener("abort", () => controller.abort(lost.reason));
  const onClose = (): void => {
    if (!response.writableFinished) controller.abort(new CallerGoneError());
  };
  if (response.destroyed) onClose();
  else if (shared !== undefined) shared.addEventListener("abort", onClose);
  else response.once("close", onClose);
  return controller.signal;
};
