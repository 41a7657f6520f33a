import { invalid } from "./errors.ts";
import type { JsonObject } from "../lib/json.ts";

/** @throws invalid */
export const assertRecursionLimit = (config: JsonObject | undefined, limitMax: number): void => {
  const limit = config?.["recursion_limit"];
  if (typeof limit !== "number" || limit <= limitMax) return;
  throw invalid(`'config.recursion_limit': must be at most ${limitMax}.`);
};
