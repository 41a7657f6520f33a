import { z } from "zod";
import { errorAnswer, jsonValue } from "../../platform/domain/json-schemas.ts";

export const tags = ["Runs"];
export const threadlessTags = ["Threadless runs"];
export const refusals = { 404: errorAnswer, 422: errorAnswer };
/** For routes that an unfinished run can block. */
export const conflicts = { ...refusals, 409: errorAnswer };
export const values = jsonValue.describe(
  "The graph's final values; `__error__` instead if the run failed, and also `__interrupt__` if it was interrupted.",
);
export const events = z.string().describe("Server-sent events; the first one is `metadata`.");
