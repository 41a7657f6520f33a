import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import { assertRecursionLimit } from "../../../platform/domain/recursion-limit.ts";
import { assistantNotFound, conflict, invalid } from "../../../platform/domain/errors.ts";
import { assistantIdOf } from "../../../platform/domain/assistant-ids.ts";
import { newId } from "../../../platform/lib/ids.ts";
import { toAssistant } from "../record.ts";
import type { References } from "../references.ts";
import type { AssistantRepository } from "../repository.ts";
import type { Assistant, AssistantCreate } from "../schemas.ts";

export interface RecordServiceParts {
  authorize: Authorize;
  repository: AssistantRepository;
  references: References;
  deleteThreads: (caller: Caller, threadIds: string[]) => Promise<unknown>;
  recursionLimitMax: number;
}

/** Bounds the locks that one statement holds. */
const THREADS_PER_BATCH = 200;

export const createRecordService = (parts: RecordServiceParts) => {
  const { authorize, repository, references, deleteThreads, recursionLimitMax } = parts;

  const removeThreadsOf = async (caller: Caller, assistantId: string): Promise<void> => {
    const visibility = await authorize(caller, "threads", "delete", {});
    let after: string | undefined;
    do {
      const threadIds = await repository.threadsOf(visibility, assistantId, after, THREADS_PER_BATCH);
      if (threadIds.length > 0) await deleteThreads(caller, threadIds);
      after = threadIds.at(-1);
    } while (after !== undefined);
  };

  return {
    /** Throws `not_found` for an unknown graph, and `conflict` for a taken id unless `if_exists` is `do_nothing`. */
    async create(caller: Caller, body: AssistantCreate): Promise<Assistant> {
      const { metadata = {}, config, context, name, description, if_exists } = body;
      const permission = await authorize(caller, "assistants", "create", {
        ...{ assistant_id: body.assistant_id, graph_id: body.graph_id, if_exists },
        ...{ metadata, config, context, name, description },
      });
      references.assertDeployed(body.graph_id);
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

    async get(caller: Caller, reference: string): Promise<Assistant> {
      const asked = { assistant_id: assistantIdOf(reference) };
      return toAssistant(
        await references.find(await authorize(caller, "assistants", "read", asked), reference),
      );
    },

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
      const { assistant_id } = await references.find(visibility, reference);
      const own = references.graphStandingFor(assistant_id);
      if (own !== undefined) {
        throw invalid(
          `'assistant_id': the graph id '${own}' stands for this assistant, so it can't be deleted; to have it as it was, activate its version 1.`,
        );
      }
      if (withThreads) await removeThreadsOf(caller, assistant_id);
      if (!(await repository.remove(visibility, assistant_id))) throw assistantNotFound(reference);
    },
  };
};

export type RecordService = ReturnType<typeof createRecordService>;
