import type { Caller } from "../../access/caller.ts";
import type { AssistantService } from "../../api/assistants/service.ts";
import { invalid } from "../../platform/domain/errors.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import { hasOwnField, RESUME, THREAD_ID } from "./tools/schemas.ts";

/** The parts of a call's arguments: fields of the server, and the input of the graph. */
export interface Arguments {
  threadId: string | undefined;
  resume: JsonValue | undefined;
  input: JsonObject;
}

export const createArgumentReader =
  ({ schemas: schemasOf }: Pick<AssistantService, "schemas">) =>
  async (
    caller: Caller,
    { assistantId, arguments: given }: { assistantId: string; arguments: JsonObject },
  ): Promise<Arguments> => {
    const own = [THREAD_ID, RESUME].filter((name) => Object.hasOwn(given, name));
    if (own.length === 0) return { threadId: undefined, resume: undefined, input: given };
    // The graph's input may have fields of these names.
    const schemas = await schemasOf(caller, assistantId);
    const input = { ...given };
    const take = (name: string): JsonValue | undefined => {
      if (!own.includes(name) || hasOwnField(schemas, name)) return undefined;
      delete input[name];
      return ownField(given, name) ?? undefined;
    };
    const [threadId, resume] = [take(THREAD_ID), take(RESUME)];
    if (threadId === undefined) {
      if (resume !== undefined) throw invalid("'resume' needs the 'thread_id' of the call that asked.");
      return { threadId, resume, input };
    }
    if (typeof threadId !== "string" || !isUuid(threadId)) throw invalid("'thread_id' must be a UUID.");
    return { threadId, resume, input };
  };
