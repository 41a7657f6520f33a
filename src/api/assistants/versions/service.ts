import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Database } from "../../../platform/database/database.ts";
import { metadataTooLarge } from "../../../platform/database/merging.ts";
import { assistantIdOf } from "../../../platform/domain/assistant-ids.ts";
import { assistantNotFound, assistantVersionNotFound, invalid } from "../../../platform/domain/errors.ts";
import { assertRecursionLimit } from "../../../platform/domain/recursion-limit.ts";
import type { Page } from "../../../http/pagination.ts";
import { toAssistant, toVersion } from "../record.ts";
import type { References } from "../references.ts";
import type { Assistant, AssistantPatch, AssistantVersionsSearch } from "../schemas.ts";
import type { VersionLists } from "./lists.ts";
import type { VersionRepository } from "./repository.ts";

export interface VersionServiceParts {
  database: Database;
  authorize: Authorize;
  repository: VersionRepository;
  lists: VersionLists;
  references: References;
  recursionLimitMax: number;
}

/** See docs/decisions/004-assistant-versions.md. */
export const createVersionService = (parts: VersionServiceParts) => {
  const { database, authorize, repository, lists, references, recursionLimitMax } = parts;

  return {
    /**
     * Each update makes a new version. Without `config` or `context` in the body these become empty; `metadata` are
     * merged; other missing fields stay.
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
      if (body.graph_id !== undefined) {
        references.assertDeployed(body.graph_id);
        const own = references.graphStandingFor(assistantId);
        if (own !== undefined && own !== body.graph_id) {
          throw invalid(
            `'graph_id': the system assistant of the graph '${own}' can't get another graph; create an assistant for '${body.graph_id}'.`,
          );
        }
      }
      const row = await database.transaction(async (transaction) => {
        const exists = await repository.lock(transaction, visibility, assistantId);
        if (!exists) throw assistantNotFound(reference);
        return await repository.addVersion(transaction, visibility, assistantId, {
          graphId: graph_id,
        });
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
      const row = await repository.activate(visibility, assistantId, version);
      if (row !== undefined) return toAssistant(row);
      // Throws if the assistant itself is missing.
      await references.find(visibility, reference);
      throw assistantVersionNotFound(assistantId, version);
    },

    async list(
      caller: Caller,
      reference: string,
      search: AssistantVersionsSearch,
      signal?: AbortSignal,
    ): Promise<Page<Assistant>> {
      const assistantId = assistantIdOf(reference);
      const asked = { assistant_id: assistantId, metadata: search.metadata };
      const visibility = await authorize(caller, "assistants", "read", asked);
      const { rows, total } = await lists.page(visibility, assistantId, search, signal);
      // Throws if the assistant is missing.
      if (total === undefined) await references.find(visibility, reference);
      return {
        items: rows.map(toVersion),
        total: total ?? (await lists.count(visibility, assistantId, search.metadata, signal)),
        offset: search.offset,
      };
    },
  };
};

export type VersionService = ReturnType<typeof createVersionService>;
