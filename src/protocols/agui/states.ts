import { createHash } from "node:crypto";
import type { JsonPatch } from "@ag-ui/core";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { TimeSlicer } from "../../platform/lib/time-slicer.ts";

const pointerTo = (key: string): string => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** Follows a graph's state by digests of its keys, so that an open stream holds no state. */
export const createStateChanges = (slicer: TimeSlicer) => {
  let known = new Map<string, string>();

  return {
    /** A JSON Patch of the keys that changed since the last call. */
    async since(state: JsonObject): Promise<JsonPatch> {
      const patch: JsonPatch = [];
      const digests = new Map<string, string>();
      for (const [key, value] of Object.entries(state)) {
        await slicer.next();
        const digest = createHash("sha1").update(JSON.stringify(value)).digest("base64");
        digests.set(key, digest);
        // `add` also replaces a member.
        if (known.get(key) !== digest) patch.push({ op: "add", path: pointerTo(key), value });
      }
      for (const key of known.keys())
        if (!digests.has(key)) patch.push({ op: "remove", path: pointerTo(key) });
      known = digests;
      return patch;
    },
  };
};
