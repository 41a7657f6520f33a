import type { Input } from "./live-thread.ts";

/** The part of the input's JSON schema that this page uses. */
export interface InputSchema {
  properties?: Record<string, unknown>;
}

export type Mode = "Message" | "Form" | "JSON";

const takesMessages = (schema: InputSchema | null | undefined): boolean =>
  schema?.properties === undefined || Object.hasOwn(schema.properties, "messages");

/** The modes of a graph, most convenient first. */
export const modesOf = (schema: InputSchema | null | undefined): Mode[] => [
  ...(takesMessages(schema) ? (["Message"] as const) : []),
  ...(schema?.properties === undefined ? [] : (["Form"] as const)),
  "JSON",
];

/** All fields with empty values. */
export const exampleOf = (schema: InputSchema | null | undefined): Input =>
  Object.fromEntries(
    Object.keys(schema?.properties ?? { messages: [] }).map((name) => [
      name,
      name === "messages" ? [{ type: "human", content: "" }] : null,
    ]),
  );
