import type { Input } from "./input.ts";

export interface InputSchema {
  properties?: Record<string, unknown>;
}

export type Mode = "Message" | "Form" | "JSON";

const takesMessages = (schema: InputSchema | null | undefined): boolean =>
  schema?.properties === undefined || Object.hasOwn(schema.properties, "messages");

/** Most convenient first. */
export const modesOf = (schema: InputSchema | null | undefined): Mode[] => [
  ...(takesMessages(schema) ? (["Message"] as const) : []),
  ...(schema?.properties === undefined ? [] : (["Form"] as const)),
  "JSON",
];

export const exampleOf = (schema: InputSchema | null | undefined): Input =>
  Object.fromEntries(
    Object.keys(schema?.properties ?? { messages: [] }).map((name) => [
      name,
      name === "messages" ? [{ type: "human", content: "" }] : null,
    ]),
  );
