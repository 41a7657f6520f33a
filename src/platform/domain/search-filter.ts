import type { z } from "zod";
import type { JsonObject } from "../lib/json.ts";
import { jsonObject, storableObject } from "./json-schemas.ts";

/** 60,000 tags against 60,000 took 8.5 s for one thread, because PostgreSQL compares lists element by element. */
const FILTER_VALUES_AT_MOST = 1_000;
/** Code that reads filters recurses. */
const FILTER_DEPTH_AT_MOST = 100;

/** Stops at the limit, so a huge filter costs no more than an allowed one. */
const isNarrow = (filter: JsonObject): boolean => {
  const open: { value: object; depth: number }[] = [{ value: filter, depth: 1 }];
  let values = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    if (depth > FILTER_DEPTH_AT_MOST) return false;
    for (const key in value) {
      values += 1;
      if (values > FILTER_VALUES_AT_MOST) return false;
      const item = (value as JsonObject)[key];
      if (typeof item === "object" && item !== null) open.push({ value: item, depth: depth + 1 });
    }
  }
  return true;
};

const tooWide =
  `holds more than ${FILTER_VALUES_AT_MOST} keys and values, or is nested deeper than ${FILTER_DEPTH_AT_MOST}; ` +
  "look for less at a time";
const meta = { type: "object", additionalProperties: true } as const;

export const searchFilter = jsonObject.refine(isNarrow, { error: tooWide, abort: true }).meta(meta);

export const storableFilter = searchFilter
  .pipe(storableObject as z.ZodType<JsonObject, JsonObject>)
  .meta(meta);
