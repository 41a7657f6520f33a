import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { AssistantService } from "../../../api/assistants/service.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import type { GraphSchemas } from "../../../graphs/json-schemas.ts";
import type { McpConfig, NamedTool } from "../../../graphs/project/mcp.ts";
import type { Database } from "../../../platform/database/database.ts";
import { assistantIdOf, systemAssistantId } from "../../../platform/domain/assistant-ids.ts";
import { invalid, ThreadloomError } from "../../../platform/domain/errors.ts";
import { createToolRepository, placeBehind, type Deployed, type ToolRow } from "./repository.ts";
import { inputSchemaOf, outputSchemaOf } from "./schemas.ts";

const TOOLS_PER_PAGE = 50;

export interface ToolServiceParts {
  database: Database;
  authorize: Authorize;
  assistants: Pick<AssistantService, "get" | "schemas">;
  graphs: Pick<Graphs, "ids" | "has" | "description">;
  config: McpConfig;
}

const isRefusal = (error: unknown): boolean =>
  error instanceof ThreadloomError && (error.kind === "not_found" || error.kind === "forbidden");

/** Tools are the assistants that a caller may see, or those of `mcp.tools` in langgraph.json. */
export const createToolService = ({ database, authorize, assistants, graphs, config }: ToolServiceParts) => {
  const repository = createToolRepository(database);

  const deployed = (): Deployed => ({
    graphIds: graphs.ids,
    systemIds: graphs.ids.map((graphId) => systemAssistantId(graphId)),
  });

  /** Undefined if the caller may not read the assistant. */
  const rowOf = async (caller: Caller, { assistant, name, description }: NamedTool) => {
    try {
      const found = await assistants.get(caller, assistant);
      const { assistant_id, graph_id } = found;
      return {
        ...{ assistant_id, graph_id, title: found.name, tool: name, cursor: "" },
        description: description ?? found.description,
      } satisfies ToolRow;
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw error;
    }
  };

  const rowsOf = async (caller: Caller, cursor: string | undefined): Promise<ToolRow[]> => {
    if (config.tools === undefined) {
      const place = placeBehind(cursor);
      if (place === undefined) throw invalid("'cursor' is not of a list of tools.");
      const visibility = await authorize(caller, "assistants", "search", {
        limit: TOOLS_PER_PAGE,
        offset: 0,
      });
      return await repository.list(visibility, deployed(), place, TOOLS_PER_PAGE + 1);
    }
    const rows: ToolRow[] = [];
    for (const named of config.tools) {
      const row = await rowOf(caller, named);
      if (row !== undefined && graphs.has(row.graph_id)) rows.push(row);
    }
    return rows;
  };

  /** Undefined if the caller may not read the assistant, or if its graph can't be built. */
  const schemasOf = async (caller: Caller, assistantId: string): Promise<GraphSchemas | undefined> => {
    try {
      return await assistants.schemas(caller, assistantId);
    } catch (error) {
      if (error instanceof ThreadloomError && error.kind !== "unavailable") return undefined;
      throw error;
    }
  };

  return {
    /** `isProvisional`: the schemas will change soon. */
    async list(caller: Caller, cursor: string | undefined) {
      const rows = await rowsOf(caller, cursor);
      const isWhole = config.tools !== undefined || rows.length <= TOOLS_PER_PAGE;
      const page = isWhole ? rows : rows.slice(0, TOOLS_PER_PAGE);
      const tools = [];
      let isProvisional = false;
      for (const { assistant_id, graph_id, tool, title, description } of page) {
        const schemas = await schemasOf(caller, assistant_id);
        if (schemas === undefined) continue;
        isProvisional ||= schemas.provisional === true;
        tools.push({
          name: tool,
          title,
          description: description ?? graphs.description(graph_id) ?? `The agent '${title}'.`,
          inputSchema: inputSchemaOf(schemas),
          outputSchema: outputSchemaOf(schemas),
        });
      }
      return { tools, nextCursor: isWhole ? undefined : page.at(-1)?.cursor, isProvisional };
    },

    /**
     * The id of the assistant that the name most likely means. Reads nothing: the run checks whether the caller may use
     * the assistant.
     */
    likely(name: string): string | undefined {
      const named = config.tools?.find((tool) => tool.name === name);
      if (named !== undefined) return assistantIdOf(named.assistant);
      return config.tools === undefined && graphs.has(name) ? systemAssistantId(name) : undefined;
    },

    /** The id of a tool's assistant; undefined for an unknown tool. */
    async find(caller: Caller, name: string): Promise<string | undefined> {
      if (config.tools !== undefined) {
        const named = config.tools.find((tool) => tool.name === name);
        return named && (await rowOf(caller, named))?.assistant_id;
      }
      if (graphs.has(name)) {
        const found = await rowOf(caller, { assistant: name, name, description: undefined });
        if (found !== undefined) return found.assistant_id;
      }
      const visibility = await authorize(caller, "assistants", "search", { limit: 1, offset: 0 });
      return await repository.find(visibility, deployed(), name);
    },
  };
};

export type ToolService = ReturnType<typeof createToolService>;
