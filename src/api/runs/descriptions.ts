import { z } from "zod";
import { errorAnswer, jsonValue } from "../../platform/domain/json-schemas.ts";

/** What the OpenAPI document says of several paths of runs alike. */

export const tags = ["Runs"];
export const threadlessTags = ["Threadless runs"];
export const refusals = { 404: errorAnswer, 422: errorAnswer };
/** Where a run in progress may stand in the way. */
export const conflicts = { ...refusals, 409: errorAnswer };
export const values = jsonValue.describe(
  "The graph's final values, `__error__` if the run failed, `__interrupt__` with it if it waits.",
);
export const events = z.string().describe("Server-sent events; `metadata` comes first.");
