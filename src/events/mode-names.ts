import type { z } from "zod";
import { distance } from "../lib/nearest-word.ts";

/** The stream modes of a run. */
export const STREAM_MODES = [
  "values",
  "updates",
  "messages",
  "messages-tuple",
  "events",
  "tasks",
  "checkpoints",
  "debug",
  "custom",
  "tools",
  "lifecycle",
] as const;

const EDITS_AT_MOST = 2;
/** With more wrong letters it is another word: `agents` is not `events`. */
const isNear = (edits: number, letters: number): boolean => edits <= EDITS_AT_MOST && edits * 3 < letters;

/** The mode that was probably meant by a name that is none of them; undefined for a name of its own. */
const meantBy = (name: string, modes: readonly string[]): string | undefined => {
  if (modes.includes(name)) return undefined;
  return modes.find(
    (mode) =>
      Math.abs(mode.length - name.length) <= EDITS_AT_MOST &&
      isNear(distance(name.toLowerCase(), mode), Math.max(name.length, mode.length)),
  );
};

/**
 * Refuses a misspelt mode, which would stream nothing. Other names are taken: clients know modes that servers learn of
 * later, and the contract wants them to emit nothing.
 */
export const refuseMisspelt =
  (modes: readonly string[]) =>
  (asked: string | readonly string[] | null | undefined, context: z.RefinementCtx): void => {
    for (const name of typeof asked === "string" ? [asked] : (asked ?? [])) {
      const meant = meantBy(name, modes);
      if (meant === undefined) continue;
      const message = `'${name}' is no stream mode, did you mean '${meant}'? The modes are ${modes.join(", ")}`;
      context.addIssue({ code: "custom", message });
      return;
    }
  };
