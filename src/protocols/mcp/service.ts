import type { Graphs } from "../../graphs/graphs.ts";
import type { McpConfig } from "../../graphs/project/mcp.ts";
import type { ThreadTtl } from "../../graphs/project/expiry.ts";
import type { CallService } from "../calls/service.ts";
import { createCalling } from "./calling.ts";
import type { AnswerMessage } from "./server.ts";
import { createTaskMethods } from "./tasks.ts";
import { createToolService } from "./tools/service.ts";

export interface McpServiceParts {
  calls: CallService;
  graphs: Pick<Graphs, "ids" | "has" | "description">;
  config: McpConfig;
  /** Of threads; undefined: for ever. */
  threadTtl: ThreadTtl | undefined;
}

export const createMcpService = ({ calls, graphs, config, threadTtl }: McpServiceParts) => {
  // A task lives in its thread.
  const taskTtlMs = threadTtl?.strategy === "delete" ? threadTtl.minutes * 60_000 : null;
  const { assistants, authorize, database } = calls;
  const methods = {
    tools: createToolService({ database, authorize, assistants, graphs, config }),
    calling: createCalling(calls, taskTtlMs),
    tasks: createTaskMethods(calls, taskTtlMs),
  };
  let loaded: Promise<AnswerMessage> | undefined;
  return {
    authorizationServers: config.authorizationServers,
    /** Loads the package at the first request, and not again: even a repeated `import()` costs 5 % of a call. */
    answering(): Promise<AnswerMessage> {
      loaded ??= import("./server.ts").then(({ createAnswering }) => createAnswering(methods));
      return loaded;
    },
  };
};

export type McpService = ReturnType<typeof createMcpService>;
