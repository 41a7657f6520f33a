import type { Graphs } from "../../graphs/graphs.ts";
import type { McpConfig } from "../../graphs/project/mcp.ts";
import type { CallService } from "../calls/service.ts";
import { createCalling } from "./calling.ts";
import { createTaskMethods } from "./tasks.ts";
import { createToolService } from "./tools/service.ts";

export interface McpServiceParts {
  calls: CallService;
  graphs: Pick<Graphs, "ids" | "has" | "description">;
  config: McpConfig;
}

export const createMcpService = ({ calls, graphs, config }: McpServiceParts) => {
  const { assistants, authorize, database } = calls;
  return {
    tools: createToolService({ database, authorize, assistants, graphs, config }),
    calling: createCalling(calls),
    tasks: createTaskMethods(calls),
    authorizationServers: config.authorizationServers,
  };
};

export type McpService = ReturnType<typeof createMcpService>;
