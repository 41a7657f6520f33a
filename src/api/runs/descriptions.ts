import { z } from "zod";
import { errorAnswer, jsonValue } from "../../platform/domain/json-schemas.ts";

export const tags = ["Runs"];
export const threadlessTags = ["Threadless runs"];
export const refusals = { 404: errorAnswer, 422: errorAnswer };
/** For routes that an unfinished run can block. */
export const conflicts = { ...refusals, 409: errorAnswer };
export const values = jsonValue.describe(
  "The graph's final values, `__error__` if the run failed, `__interrupt__` with it if it waits.",
);
export const events = z.string().describe("Server-sent events; `metadata` comes first.");
