import { errorForClients } from "../../platform/domain/error-for-clients.ts";
import { boundedFields } from "../../platform/lib/log-fields.ts";
import { frameOf } from "../error-place.ts";
import type { SpanFields } from "./scope.ts";

const MESSAGE_LENGTH_AT_MOST = 1_000;

/** Clients see the place, so it does not name the folders of the server. */
const FOLDERS_SHOWN = 3;

const described = (thrown: unknown): SpanFields => {
  const { error: type, message } = errorForClients(thrown);
  const frame = frameOf(thrown);
  return {
    error: {
      type: type.slice(0, 100).toWellFormed(),
      message: message.slice(0, MESSAGE_LENGTH_AT_MOST).toWellFormed(),
      ...(frame === undefined
        ? {}
        : {
            at: `${frame.file.split("/").slice(-FOLDERS_SHOWN).join("/")}:${frame.line}:${frame.column ?? 1}`,
          }),
    },
  };
};

/** `at`: the first place in the project's code: the end of `file:line:column`. Never throws. */
export const errorFields = (thrown: unknown): SpanFields => {
  try {
    return described(thrown);
  } catch {
    // Reading a thrown value may throw; the graph must see what was thrown.
    return { error: { type: "Error", message: "(can't be shown)" } };
  }
};

const CHARACTERS_AT_MOST = 2_000;

const cut = (text: string): string =>
  (text.length > CHARACTERS_AT_MOST ? `${text.slice(0, CHARACTERS_AT_MOST)}…` : text).toWellFormed();

/** JSON has no big integers. */
const withoutBigIntegers = (_key: string, part: unknown): unknown =>
  typeof part === "bigint" ? String(part) : part;

/** Any value as text of at most 2,001 characters: JSON, or its beginning. */
export const shownValue = (value: unknown): string => {
  if (typeof value === "string") return cut(value);
  try {
    if (typeof value !== "object" || value === null) return cut(String(value));
    return cut(JSON.stringify(boundedFields(value), withoutBigIntegers) ?? "null");
  } catch {
    // Values of a graph may throw when read.
    return "(can't be shown)";
  }
};
