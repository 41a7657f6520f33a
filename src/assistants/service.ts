import type { Authorize } from "../access/authorize.ts";
import type { Caller } from "../access/caller.ts";
import type { Visibility } from "../access/visibility.ts";
import type { Database } from "../database/database.ts";
import { metadataTooLarge } from "../database/merging.ts";
import type { AssistantRow } from "../database/tables.ts";
import type { GraphDrawing } from "../graphs/drawing.ts";
import type { Graphs } from "../graphs/graphs.ts";
import type { GraphSchemas } from "../graphs/json-schemas.ts";
import {
  assistantNotFound,
  assistantVersionNotFound,
  conflict,
  graphNotFound,
  invalid,
} from "../domain/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { newId } from "../lib/ids.ts";
import { assistantIdOf, systemAssistantId } from "../domain/assistant-ids.ts";
import type { Page } from "../http/pagination.ts";
import { assertRecursionLimit } from "../domain/recursion-limit.ts";
import { toAssistant, toExtract, toVersion } from "./record.ts";
import type { AssistantRepository } from "./repository.ts";
import {
  ASSISTANT_FIELDS,
  type Assistant,
  type AssistantCreate,
  type AssistantFilter,
  type AssistantPatch,
  type AssistantSearch,
  type AssistantVersionsSearch,
} from "./schemas.ts";

/** What assistants ask of the deployed graphs. */
export type AssistantGraphs = Pick<
  Graphs,
  "ids" | "has" | "description" | "schemas" | "drawing" | "subgraphs"
>;

export interface AssistantServiceOptions {
  database: Database;
  repository: AssistantRepository;
  authorize: Authorize;
  graphs: AssistantGraphs;
  /** Deletes threads with their runs and checkpoints; ids that are gone by then are no error. */
  deleteThreads: (caller: Caller, threadIds: string[]) => Promise<unknown>;
  /** See Config; by default there is no limit. */
  recursionLimitMax?: number;
}

const DEFAULT_NAME = "Untitled";
/** Threads of a deleted assistant are deleted in batches, so that no statement holds thousands of locks. */
const THREADS_PER_BATCH = 200;

/**
 * The rules of assistants and their versions (docs/decisions/004-assistant-versions.md).
 *
 * `caller` is who asks; what it may not see is as if it were not there.
 * A `reference` is an assistant's id or a graph id, which stands for the graph's system assistant.
 * Every method that takes one throws `not_found` naming it if there is no such assistant.
 */
export const createAssistantService = (options: AssistantServiceOptions) => {
  const { database, repository, authorize, graphs, deleteThreads, recursionLimitMax = Infinity } = options;

  const assertDeployed = (graphId: string): void => {
    if (!graphs.has(graphId)) throw graphNotFound(graphId);
  };

  const find = async (visibility: Visibility<"assistants">, reference: string): Promise<AssistantRow> => {
    const row = await repository.find(visibility, assistantIdOf(reference));
    if (row === undefined) throw assistantNotFound(reference);
    return row;
  };

  /** A graph may be made by a factory, which is given the assistant's configuration. */
  const findDeployed = async (caller: Caller, reference: string) => {
    const visibility = await authorize(caller, "assistants", "read");
    const { graph_id, config, context } = await find(visibility, reference);
    assertDeployed(graph_id);
    return { graphId: graph_id, configuration: { ...config, context } };
  };

  /** The deployed graph whose id stands for this assistant. */
  const graphStandingFor = (assistantId: string): string | undefined =>
    graphs.ids.find((graphId) => systemAssistantId(graphId) === assistantId.toLowerCase());

  const removeThreadsOf = async (caller: Caller, assistantId: string): Promise<void> => {
    const visibility = await authorize(caller, "threads", "delete");
    let after: string | undefined;
    do {
      const threadIds = await repository.threadsOf(visibility, assistantId, after, THREADS_PER_BATCH);
      if (threadIds.length > 0) await deleteThreads(caller, threadIds);
      after = threadIds.at(-1);
    } while (after !== undefined);
  };

  return {
    /**
     * Once at boot: one assistant per graph, whose id clients can compute from the graph id. `configs` are what new ones
     * are made with, by graph id; answers the graphs of `configs` whose assistant was there and has another one.
     */
    async ensureSystemAssistants(
      caller: Caller,
      graphIds: readonly string[],
      configs: Readonly<Record<string, JsonObject>> = {},
    ): Promise<string[]> {
      const configOf = (graphId: string): JsonObject =>
        (Object.hasOwn(configs, graphId) ? configs[graphId] : undefined) ?? {};
      const visibility = await authorize(caller, "assistants", "create");
      await repository.ensureSystemAssistants(
        visibility,
        graphIds.map(systemAssistantId),
        [...graphIds],
        graphIds.map((graphId) => graphs.description(graphId) ?? null),
        graphIds.map(configOf),
      );
      const wished = graphIds.filter((graphId) => Object.hasOwn(configs, graphId));
      if (wished.length === 0) return [];
      const others = await repository.listOtherConfigs(
        visibility,
        wished.map(systemAssistantId),
        wished.map(configOf),
      );
      return wished.filter((graphId) => others.includes(systemAssistantId(graphId)));
    },

    /** Throws `not_found` for a graph that is not deployed, `conflict` if the id is taken and must not be. */
    async create(caller: Caller, body: AssistantCreate): Promise<Assistant> {
      const visibility = await authorize(caller, "assistants", "create");
      assertDeployed(body.graph_id);
      assertRecursionLimit(body.config, recursionLimitMax);
      const assistantId = body.assistant_id ?? newId();
      const row = await repository.create(visibility, {
        assistantId,
        graphId: body.graph_id,
        name: body.name ?? DEFAULT_NAME,
        description: body.description ?? null,
        config: body.config ?? {},
        context: body.context ?? {},
        metadata: body.metadata ?? {},
      });
      if (row !== undefined) return toAssistant(row);
      // One that is there and is not this caller's to see is a conflict, too.
      const existing =
        body.if_exists === "do_nothing" ? await repository.find(visibility, assistantId) : undefined;
      if (existing !== undefined) return toAssistant(existing);
      throw conflict(`Assistant '${assistantId}' already exists.`);
    },

    async get(caller: Caller, reference: string): Promise<Assistant> {
      return toAssistant(await find(await authorize(caller, "assistants", "read"), reference));
    },

    /**
     * Makes the next version from the body and activates it. Config and context are the body's, whole, also if
     * it has none; the name, description and graph stay unless given; metadata merges. Throws `invalid` if they
     * would grow too large, or if the assistant that a graph's id stands for was to execute another graph.
     */
    async update(caller: Caller, reference: string, body: AssistantPatch): Promise<Assistant> {
      const visibility = await authorize(caller, "assistants", "update");
      const assistantId = assistantIdOf(reference);
      assertRecursionLimit(body.config, recursionLimitMax);
      if (body.graph_id !== undefined) {
        assertDeployed(body.graph_id);
        const own = graphStandingFor(assistantId);
        if (own !== undefined && own !== body.graph_id) {
          throw invalid(
            `'graph_id': this is the assistant that '${own}' stands for; create another one for '${body.graph_id}'.`,
          );
        }
      }
      const row = await database.transaction(async (transaction) => {
        const isThere = await repository.lock(transaction, visibility, assistantId);
        if (!isThere) throw assistantNotFound(reference);
        return await repository.addVersion(transaction, visibility, assistantId, {
          graphId: body.graph_id,
          name: body.name,
          description: body.description,
          config: body.config ?? {},
          context: body.context ?? {},
          metadata: body.metadata ?? {},
        });
      });
      if (row === undefined) throw metadataTooLarge();
      return toAssistant(row);
    },

    /** Activates a version that exists: every field is as that version had it. */
    async setLatest(caller: Caller, reference: string, version: number | undefined): Promise<Assistant> {
      const visibility = await authorize(caller, "assistants", "update");
      if (version === undefined)
        throw invalid("'version': must be given, the number of an existing version.");
      const assistantId = assistantIdOf(reference);
      const row = await repository.activate(visibility, assistantId, version);
      if (row !== undefined) return toAssistant(row);
      await find(visibility, reference);
      throw assistantVersionNotFound(assistantId, version);
    },

    /**
     * All versions go with it. Its threads go first: if that fails half-way, asking again goes on. Throws `invalid` for
     * the assistant of a deployed graph: the graph's id must not stand for nothing.
     */
    async remove(
      caller: Caller,
      reference: string,
      { withThreads }: { withThreads: boolean },
    ): Promise<void> {
      const visibility = await authorize(caller, "assistants", "delete");
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

    /** A page that would get too large ends early; its `total` is the true one. */
    async search(
      caller: Caller,
      search: AssistantSearch,
      signal?: AbortSignal,
    ): Promise<Page<Partial<Assistant>>> {
      const visibility = await authorize(caller, "assistants", "search");
      const fields =
        search.select === undefined || search.select.length === 0 ? ASSISTANT_FIELDS : search.select;
      const { rows, total } = await repository.search(visibility, search, [...new Set(fields)], signal);
      return {
        items: rows.map(toExtract),
        total: total ?? (search.offset === 0 ? 0 : await repository.count(visibility, search, signal)),
        offset: search.offset,
      };
    },

    async count(caller: Caller, filter: AssistantFilter, signal?: AbortSignal): Promise<number> {
      return await repository.count(await authorize(caller, "assistants", "search"), filter, signal);
    },

    /** Newest first. */
    async versions(
      caller: Caller,
      reference: string,
      search: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<Page<Assistant>> {
      const visibility = await authorize(caller, "assistants", "read");
      const assistantId = assistantIdOf(reference);
      const { rows, total } = await repository.versions(visibility, assistantId, search, signal);
      if (total === undefined) await find(visibility, reference);
      return {
        items: rows.map(toVersion),
        total: total ?? (await repository.countVersions(visibility, assistantId, search.metadata, signal)),
        offset: search.offset,
      };
    },

    /** `xray`: whether to draw into subgraphs, or how deep. */
    async drawing(caller: Caller, reference: string, xray: boolean | number): Promise<GraphDrawing> {
      const { graphId, configuration } = await findDeployed(caller, reference);
      return await graphs.drawing(graphId, xray, configuration);
    },

    async schemas(caller: Caller, reference: string): Promise<GraphSchemas> {
      const { graphId, configuration } = await findDeployed(caller, reference);
      return await graphs.schemas(graphId, configuration);
    },

    /** By namespace; an unknown namespace has none. */
    async subgraphs(
      caller: Caller,
      reference: string,
      namespace: string | undefined,
      recurse: boolean,
    ): Promise<Record<string, GraphSchemas>> {
      const { graphId, configuration } = await findDeployed(caller, reference);
      return await graphs.subgraphs(graphId, namespace, recurse, configuration);
    },
  };
};

export type AssistantService = ReturnType<typeof createAssistantService>;
