import type { Database } from "../database/database.ts";
import { metadataTooLarge } from "../database/merging.ts";
import type { AssistantRow, AssistantVersionRow } from "../database/tables.ts";
import type { GraphDrawing } from "../graphs/drawing.ts";
import type { Graphs } from "../graphs/graphs.ts";
import type { GraphSchemas } from "../graphs/json-schemas.ts";
import {
  assistantNotFound,
  assistantVersionNotFound,
  conflict,
  graphNotFound,
  invalid,
} from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { assistantIdOf, newId, systemAssistantId } from "../lib/ids.ts";
import type { Page } from "../http/pagination.ts";
import { assertRecursionLimit } from "../lib/recursion-limit.ts";
import { timestamp } from "../lib/timestamps.ts";
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
  graphs: AssistantGraphs;
  /** Deletes threads with their runs and checkpoints; ids that are gone by then are no error. */
  deleteThreads: (threadIds: string[]) => Promise<unknown>;
  /** See Config; by default there is no limit. */
  recursionLimitMax?: number;
}

const DEFAULT_NAME = "Untitled";
/** Threads of a deleted assistant are deleted in batches, so that no statement holds thousands of locks. */
const THREADS_PER_BATCH = 200;

const toAssistant = (row: AssistantRow): Assistant => ({
  assistant_id: row.assistant_id,
  graph_id: row.graph_id,
  name: row.name,
  description: row.description,
  config: row.config,
  context: row.context,
  metadata: row.metadata,
  version: row.version,
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
});

/** A version never changes after it was made, hence one time for both. */
const toVersion = (row: AssistantVersionRow): Assistant =>
  toAssistant({ ...row, updated_at: row.created_at });

const toExtract = ({ created_at, updated_at, ...rest }: Partial<AssistantRow>): Partial<Assistant> => ({
  ...rest,
  ...(created_at === undefined ? {} : { created_at: timestamp(created_at) }),
  ...(updated_at === undefined ? {} : { updated_at: timestamp(updated_at) }),
});

/**
 * The rules of assistants and their versions (docs/decisions/004-assistant-versions.md).
 *
 * A `reference` is an assistant's id or a graph id, which stands for the graph's system assistant.
 * Every method that takes one throws `not_found` naming it if there is no such assistant.
 */
export const createAssistantService = (options: AssistantServiceOptions) => {
  const { database, repository, graphs, deleteThreads, recursionLimitMax = Infinity } = options;

  const assertDeployed = (graphId: string): void => {
    if (!graphs.has(graphId)) throw graphNotFound(graphId);
  };

  const find = async (reference: string): Promise<AssistantRow> => {
    const row = await repository.find(assistantIdOf(reference));
    if (row === undefined) throw assistantNotFound(reference);
    return row;
  };

  /** A graph may be made by a factory, which is given the assistant's configuration. */
  const findDeployed = async (reference: string) => {
    const { graph_id, config, context } = await find(reference);
    assertDeployed(graph_id);
    return { graphId: graph_id, configuration: { ...config, context } };
  };

  /** The deployed graph whose id stands for this assistant. */
  const graphStandingFor = (assistantId: string): string | undefined =>
    graphs.ids.find((graphId) => systemAssistantId(graphId) === assistantId.toLowerCase());

  const removeThreadsOf = async (assistantId: string): Promise<void> => {
    let after: string | undefined;
    do {
      const threadIds = await repository.threadsOf(assistantId, after, THREADS_PER_BATCH);
      if (threadIds.length > 0) await deleteThreads(threadIds);
      after = threadIds.at(-1);
    } while (after !== undefined);
  };

  return {
    /**
     * Once at boot: one assistant per graph, whose id clients can compute from the graph id. `configs` are what new ones
     * are made with, by graph id; answers the graphs of `configs` whose assistant was there and has another one.
     */
    async ensureSystemAssistants(
      graphIds: readonly string[],
      configs: Readonly<Record<string, JsonObject>> = {},
    ): Promise<string[]> {
      const configOf = (graphId: string): JsonObject =>
        (Object.hasOwn(configs, graphId) ? configs[graphId] : undefined) ?? {};
      await repository.ensureSystemAssistants(
        graphIds.map(systemAssistantId),
        [...graphIds],
        graphIds.map((graphId) => graphs.description(graphId) ?? null),
        graphIds.map(configOf),
      );
      const wished = graphIds.filter((graphId) => Object.hasOwn(configs, graphId));
      if (wished.length === 0) return [];
      const others = await repository.listOtherConfigs(wished.map(systemAssistantId), wished.map(configOf));
      return wished.filter((graphId) => others.includes(systemAssistantId(graphId)));
    },

    /** Throws `not_found` for a graph that is not deployed, `conflict` if the id is taken and must not be. */
    async create(body: AssistantCreate): Promise<Assistant> {
      assertDeployed(body.graph_id);
      assertRecursionLimit(body.config, recursionLimitMax);
      const assistantId = body.assistant_id ?? newId();
      const row = await repository.create({
        assistantId,
        graphId: body.graph_id,
        name: body.name ?? DEFAULT_NAME,
        description: body.description ?? null,
        config: body.config ?? {},
        context: body.context ?? {},
        metadata: body.metadata ?? {},
      });
      if (row !== undefined) return toAssistant(row);
      if (body.if_exists === "do_nothing") return toAssistant(await find(assistantId));
      throw conflict(`Assistant '${assistantId}' already exists.`);
    },

    async get(reference: string): Promise<Assistant> {
      return toAssistant(await find(reference));
    },

    /**
     * Makes the next version from the body and activates it. Config and context are the body's, whole, also if
     * it has none; the name, description and graph stay unless given; metadata merges. Throws `invalid` if they
     * would grow too large, or if the assistant that a graph's id stands for was to execute another graph.
     */
    async update(reference: string, body: AssistantPatch): Promise<Assistant> {
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
        if (!(await repository.lock(transaction, assistantId))) throw assistantNotFound(reference);
        return await repository.addVersion(transaction, assistantId, {
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
    async setLatest(reference: string, version: number | undefined): Promise<Assistant> {
      if (version === undefined)
        throw invalid("'version': must be given, the number of an existing version.");
      const assistantId = assistantIdOf(reference);
      const row = await repository.activate(assistantId, version);
      if (row !== undefined) return toAssistant(row);
      await find(reference);
      throw assistantVersionNotFound(assistantId, version);
    },

    /**
     * All versions go with it. Its threads go first: if that fails half-way, asking again goes on. Throws `invalid` for
     * the assistant of a deployed graph: the graph's id must not stand for nothing.
     */
    async remove(reference: string, { withThreads }: { withThreads: boolean }): Promise<void> {
      const { assistant_id } = await find(reference);
      const own = graphStandingFor(assistant_id);
      if (own !== undefined) {
        throw invalid(
          `'assistant_id': the graph id '${own}' stands for this assistant, so it can't be deleted; to have it as it was, activate its version 1.`,
        );
      }
      if (withThreads) await removeThreadsOf(assistant_id);
      if (!(await repository.remove(assistant_id))) throw assistantNotFound(reference);
    },

    /** A page that would get too large ends early; its `total` is the true one. */
    async search(search: AssistantSearch, signal?: AbortSignal): Promise<Page<Partial<Assistant>>> {
      const fields =
        search.select === undefined || search.select.length === 0 ? ASSISTANT_FIELDS : search.select;
      const { rows, total } = await repository.search(search, [...new Set(fields)], signal);
      return {
        items: rows.map(toExtract),
        total: total ?? (search.offset === 0 ? 0 : await repository.count(search, signal)),
        offset: search.offset,
      };
    },

    async count(filter: AssistantFilter, signal?: AbortSignal): Promise<number> {
      return await repository.count(filter, signal);
    },

    /** Newest first. */
    async versions(
      reference: string,
      search: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<Page<Assistant>> {
      const assistantId = assistantIdOf(reference);
      const { rows, total } = await repository.versions(assistantId, search, signal);
      if (total === undefined) await find(reference);
      return {
        items: rows.map(toVersion),
        total: total ?? (await repository.countVersions(assistantId, search.metadata, signal)),
        offset: search.offset,
      };
    },

    /** `xray`: whether to draw into subgraphs, or how deep. */
    async drawing(reference: string, xray: boolean | number): Promise<GraphDrawing> {
      const { graphId, configuration } = await findDeployed(reference);
      return await graphs.drawing(graphId, xray, configuration);
    },

    async schemas(reference: string): Promise<GraphSchemas> {
      const { graphId, configuration } = await findDeployed(reference);
      return await graphs.schemas(graphId, configuration);
    },

    /** By namespace; an unknown namespace has none. */
    async subgraphs(
      reference: string,
      namespace: string | undefined,
      recurse: boolean,
    ): Promise<Record<string, GraphSchemas>> {
      const { graphId, configuration } = await findDeployed(reference);
      return await graphs.subgraphs(graphId, namespace, recurse, configuration);
    },
  };
};

export type AssistantService = ReturnType<typeof createAssistantService>;
