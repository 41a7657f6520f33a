import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { GraphDrawing } from "../../graphs/drawing.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import type { GraphSchemas } from "../../graphs/json-schemas.ts";
import { totalOf, type Page } from "../../http/pagination.ts";
import type { Database } from "../../platform/database/database.ts";
import { metadataTooLarge } from "../../platform/database/merging.ts";
import type { AssistantRow } from "../../platform/database/tables.ts";
import { assistantIdOf, systemAssistantId } from "../../platform/domain/assistant-ids.ts";
import {
  assistantNotFound,
  assistantVersionNotFound,
  conflict,
  graphNotFound,
  invalid,
} from "../../platform/domain/errors.ts";
import { assertRecursionLimit } from "../../platform/domain/recursion-limit.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import { toAssistant, toExtract, toVersion } from "./record.ts";
import { createAssistantRepository } from "./repository.ts";
import { createVersionRepository } from "./versions.ts";
import {
  ASSISTANT_FIELDS,
  type Assistant,
  type AssistantCreate,
  type AssistantFilter,
  type AssistantPatch,
  type AssistantSearch,
  type AssistantVersionsSearch,
} from "./schemas.ts";

export interface AssistantServiceOptions {
  database: Database;
  authorize: Authorize;
  graphs: Pick<Graphs, "ids" | "has" | "description" | "describe" | "drawing" | "subgraphs">;
  /** Missing ids are no error. */
  deleteThreads: (caller: Caller, threadIds: string[]) => Promise<unknown>;
  recursionLimitMax?: number;
}

export interface AssistantDefaults {
  config?: JsonObject | undefined;
  context?: JsonObject | undefined;
  /** Kept as the metadata `starters`. */
  starters?: readonly string[] | undefined;
}

/** Bounds the locks that one statement holds. */
const THREADS_PER_BATCH = 200;

/**
 * A `reference` is an assistant's id, or a graph id for the graph's system assistant. Methods with a reference throw
 * `not_found` if the assistant is missing or hidden.
 */
export const createAssistantService = (options: AssistantServiceOptions) => {
  const { database, authorize, graphs, deleteThreads, recursionLimitMax = Infinity } = options;
  const repository = createAssistantRepository(database);
  const versions = createVersionRepository(database);

  const find = async (visibility: Visibility<"assistants">, reference: string): Promise<AssistantRow> => {
    const row = await repository.find(visibility, assistantIdOf(reference));
    if (row === undefined) throw assistantNotFound(reference);
    return row;
  };

  const assertDeployed = (graphId: string): void => {
    if (!graphs.has(graphId)) throw graphNotFound(graphId);
  };

  const graphStandingFor = (assistantId: string): string | undefined =>
    graphs.ids.find((graphId) => systemAssistantId(graphId) === assistantId.toLowerCase());

  const findReadable = async (caller: Caller, reference: string): Promise<AssistantRow> =>
    await find(
      await authorize(caller, "assistants", "read", { assistant_id: assistantIdOf(reference) }),
      reference,
    );

  const findDeployed = async (caller: Caller, reference: string) => {
    const { graph_id, config, context } = await findReadable(caller, reference);
    assertDeployed(graph_id);
    return { graphId: graph_id, configuration: { ...config, context } };
  };

  const removeThreadsOf = async (caller: Caller, assistantId: string): Promise<void> => {
    const visibility = await authorize(caller, "threads", "delete", {});
    let after: string | undefined;
    do {
      const threadIds = await repository.threadsOf(visibility, assistantId, after, THREADS_PER_BATCH);
      if (threadIds.length > 0) await deleteThreads(caller, threadIds);
      after = threadIds.at(-1);
    } while (after !== undefined);
  };

  const maySearch = async (
    caller: Caller,
    { graph_id, metadata, limit, offset }: Partial<AssistantSearch>,
  ): Promise<Visibility<"assistants">> =>
    await authorize(caller, "assistants", "search", { graph_id, metadata, limit, offset });

  const describe = async (caller: Caller, reference: string) => {
    const { graphId, configuration } = await findDeployed(caller, reference);
    return await graphs.describe(graphId, configuration);
  };

  return {
    /** Throws `not_found` for an unknown graph, and `conflict` for a taken id unless `if_exists` is `do_nothing`. */
    async create(caller: Caller, body: AssistantCreate): Promise<Assistant> {
      const { metadata = {}, config, context, name, description, if_exists } = body;
      const permission = await authorize(caller, "assistants", "create", {
        ...{ assistant_id: body.assistant_id, graph_id: body.graph_id, if_exists },
        ...{ metadata, config, context, name, description },
      });
      assertDeployed(body.graph_id);
      assertRecursionLimit(permission.value.config, recursionLimitMax);
      const assistantId = body.assistant_id ?? newId();
      const row = await repository.create(permission, { assistantId, graphId: body.graph_id });
      if (row !== undefined) return toAssistant(row);
      // A hidden assistant's id is a conflict, too.
      const existing =
        if_exists === "do_nothing" ? await repository.find(permission, assistantId) : undefined;
      if (existing !== undefined) return toAssistant(existing);
      throw conflict(`Assistant '${assistantId}' already exists.`);
    },

    get: async (caller: Caller, reference: string): Promise<Assistant> =>
      toAssistant(await findReadable(caller, reference)),

    /**
     * Deletes threads first, so that a repeated request continues after a failure. Throws `invalid` for a system
     * assistant, because its graph's id refers to it.
     */
    async remove(
      caller: Caller,
      reference: string,
      { withThreads }: { withThreads: boolean },
    ): Promise<void> {
      const asked = { assistant_id: assistantIdOf(reference) };
      const visibility = await authorize(caller, "assistants", "delete", asked);
      const { assistant_id } = await find(visibility, reference);
      const own = graphStandingFor(assistant_id);
      if (own !== undefined) {
        throw invalid(
          `'assistant_id': the graph id '${own}' stands for this assistant, so it can't be deleted; to have it as it was, activate its version 1.`,
        );
      }
      if (withThreads) await removeThreadsOf(caller, assistant_id);
      if (!(await repository.remove(visibility, assistant_id))) throw assistantNotFound(reference);
    },

    async search(
      caller: Caller,
      search: AssistantSearch,
      signal?: AbortSignal,
    ): Promise<Page<Partial<Assistant>>> {
      const visibility = await maySearch(caller, search);
      const fields =
        search.select === undefined || search.select.length === 0 ? ASSISTANT_FIELDS : search.select;
      const { rows, total, cursor } = await repository.search(
        visibility,
        search,
        [...new Set(fields)],
        signal,
      );
      return {
        items: rows.map(toExtract),
        total: await totalOf(search, total, () => repository.count(visibility, search, signal)),
        offset: search.offset,
        cursor,
      };
    },

    async count(caller: Caller, filter: AssistantFilter, signal?: AbortSignal): Promise<number> {
      return await repository.count(await maySearch(caller, filter), filter, signal);
    },

    /**
     * Each update makes a new version (docs/decisions/004-assistant-versions.md). Without `config` or `context` in the
     * body these become empty; `metadata` are merged; other missing fields stay.
     * @throws `invalid` for too large metadata, and for another graph of a system assistant
     */
    async update(caller: Caller, reference: string, body: AssistantPatch): Promise<Assistant> {
      const assistantId = assistantIdOf(reference);
      const { graph_id, metadata = {}, config, context, name, description } = body;
      const visibility = await authorize(caller, "assistants", "update", {
        assistant_id: assistantId,
        graph_id,
        metadata,
        config,
        context,
        name,
        description,
      });
      assertRecursionLimit(visibility.value.config, recursionLimitMax);
      if (graph_id !== undefined) {
        assertDeployed(graph_id);
        const own = graphStandingFor(assistantId);
        if (own !== undefined && own !== graph_id) {
          throw invalid(
            `'graph_id': the system assistant of the graph '${own}' can't get another graph; create an assistant for '${graph_id}'.`,
          );
        }
      }
      const row = await database.transaction(async (transaction) => {
        const exists = await versions.lock(transaction, visibility, assistantId);
        if (!exists) throw assistantNotFound(reference);
        return await versions.addVersion(transaction, visibility, assistantId, { graphId: graph_id });
      });
      if (row === undefined) throw metadataTooLarge();
      return toAssistant(row);
    },

    async setLatest(caller: Caller, reference: string, version: number | undefined): Promise<Assistant> {
      const assistantId = assistantIdOf(reference);
      const asked = { assistant_id: assistantId, metadata: {}, version };
      const visibility = await authorize(caller, "assistants", "update", asked);
      if (version === undefined)
        throw invalid("'version' is missing: send the number of an existing version.");
      const row = await versions.activate(visibility, assistantId, version);
      if (row !== undefined) return toAssistant(row);
      // Throws if the assistant itself is missing.
      await find(visibility, reference);
      throw assistantVersionNotFound(assistantId, version);
    },

    async versions(
      caller: Caller,
      reference: string,
      search: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<Page<Assistant>> {
      const assistantId = assistantIdOf(reference);
      const asked = { assistant_id: assistantId, metadata: search.metadata };
      const visibility = await authorize(caller, "assistants", "read", asked);
      const { rows, total } = await versions.page(visibility, assistantId, search, signal);
      // Throws if the assistant is missing.
      if (total === undefined) await find(visibility, reference);
      return {
        items: rows.map(toVersion),
        total: total ?? (await versions.count(visibility, assistantId, search.metadata, signal)),
        offset: search.offset,
      };
    },

    /** `xray`: true draws all subgraphs; a number draws that many levels. */
    async drawing(caller: Caller, reference: string, xray: boolean | number): Promise<GraphDrawing> {
      const { graphId, configuration } = await findDeployed(caller, reference);
      return await graphs.drawing(graphId, xray, configuration);
    },

    async schemas(caller: Caller, reference: string): Promise<GraphSchemas> {
      return (await describe(caller, reference)).schemas;
    },

    describe,

    /** Empty for an unknown namespace. */
    async subgraphs(
      caller: Caller,
      reference: string,
      namespace: string | undefined,
      recurse: boolean,
    ): Promise<Record<string, GraphSchemas>> {
      const { graphId, configuration } = await findDeployed(caller, reference);
      return await graphs.subgraphs(graphId, namespace, recurse, configuration);
    },

    /**
     * Creates missing system assistants at the start. Changed defaults become a new active version; returns the graphs of
     * changed assistants.
     */
    async ensureOfGraphs(
      caller: Caller,
      graphIds: readonly string[],
      defaults: Readonly<Record<string, AssistantDefaults>> = {},
    ): Promise<string[]> {
      const visibility = await authorize(caller, "assistants", "create", { graph_id: "", metadata: {} });
      const assistants = graphIds.map((graphId) => {
        const { config = {}, context = {}, starters = [] } = ownField(defaults, graphId) ?? {};
        return {
          assistantId: systemAssistantId(graphId),
          graphId,
          description: graphs.description(graphId) ?? null,
          config,
          context,
          metadata: starters.length === 0 ? {} : { starters },
        };
      });
      await versions.ensureOfGraphs(visibility, assistants);
      return await versions.reviseOfGraphs(visibility, assistants);
    },
  };
};

export type AssistantService = ReturnType<typeof createAssistantService>;
