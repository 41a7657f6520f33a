import { z } from "zod";
import { isUuid } from "../../platform/lib/ids.ts";

/** An assistant that is a tool. */
export interface NamedTool {
  /** An assistant's or a graph's id. */
  assistant: string;
  name: string;
  description: string | undefined;
}

/** `mcp` of langgraph.json. */
export interface McpConfig {
  /** Undefined: each visible assistant is a tool. */
  readonly tools: readonly NamedTool[] | undefined;
  /** Issuers of tokens that the project's `Auth` accepts. Empty: no document of RFC 9728. */
  readonly authorizationServers: readonly string[];
}

/** The names that all providers of models accept. */
const NAME = /^[\w-]{1,64}$/;

const tool = z
  .strictObject({
    assistant: z.string().min(1),
    name: z.string().regex(NAME, { error: "must have 1 to 64 letters, digits, '_' and '-'" }).nullish(),
    description: z.string().min(1).nullish(),
  })
  .refine(({ assistant, name }) => name != null || (NAME.test(assistant) && !isUuid(assistant)), {
    error: "needs a 'name', because 'assistant' can't be the name of a tool",
  })
  .transform(({ assistant, name, description }): NamedTool => ({
    assistant,
    name: name ?? assistant,
    description: description ?? undefined,
  }));

export const mcpSchema = z
  .object({
    tools: z
      .array(tool)
      .refine((tools) => new Set(tools.map(({ name }) => name)).size === tools.length, {
        error: "must give each tool another name",
      })
      .nullish(),
    authorization_servers: z.array(z.url({ protocol: /^https?$/ })).nullish(),
  })
  .nullish();

export const mcpConfigOf = (mcp: z.output<typeof mcpSchema>): McpConfig => ({
  tools: mcp?.tools ?? undefined,
  authorizationServers: mcp?.authorization_servers ?? [],
});
