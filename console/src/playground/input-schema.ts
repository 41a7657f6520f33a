import type { Input } from "./live-thread.ts";

/** JSON schema of what a graph takes, as far as this page looks into it. */
export interface InputSchema {
  properties?: Record<string, unknown>;
}

/** How an input is written. */
export type Mode = "Message" | "Form" | "JSON";

const takesMessages = (schema: InputSchema | null | undefined): boolean =>
  schema?.properties === undefined || Object.hasOwn(schema.properties, "messages");

/** Those that there are for a graph, the handiest first. */
export const modesOf = (schema: InputSchema | null | undefined): Mode[] => [
  ...(takesMessages(schema) ? (["Message"] as const) : []),
  ...(schema?.properties === undefined ? [] : (["Form"] as const)),
  "JSON",
];

/** What an input could look like: every field, without its value. */
export const exampleOf = (schema: InputSchema | null | undefined): Input =>
  Object.fromEntries(
    Object.keys(schema?.properties ?? { messages: [] }).map((name) => [
      name,
      name === "messages" ? [{ type: "human", content: "" }] : null,
    ]),
  );
