import { HandlerError } from "../../access/auth/decisions.ts";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { assistantIdOf } from "../../domain/assistant-ids.ts";
import { ThreadloomError } from "../../domain/errors.ts";
import { validated } from "../../http/validation.ts";
import { newId } from "../../lib/ids.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { CreationRights } from "../../queue/sql/create.ts";
import { runBody, threadlessRunBody, type RunBody, type ThreadlessRunBody } from "../schemas.ts";

/** What somebody may create, and as whom. */
export interface GrantedRun<Body> {
  rights: CreationRights;
  /** What was asked for, as a handler of the project's may have changed it. */
  body: Body;
  runId: string;
  /** The user whose run it is; null if no user creates it. */
  authUser: JsonObject | null;
}

export const authUserOf = (caller: Caller): JsonObject | null =>
  caller.kind === "user" ? caller.user : null;

/** What a handler made of a request for a run is held to what a client may send. */
const revalidated = <Body extends RunBody | ThreadlessRunBody>(body: Body, given: object): Body => {
  try {
    const schema = "on_completion" in body ? threadlessRunBody : runBody;
    return validated(schema, { ...body, ...given }, "The run") as Body;
  } catch (cause) {
    if (!(cause instanceof ThreadloomError)) throw cause;
    throw new HandlerError("The handler of threads:create_run left a run that can't be taken.", { cause });
  }
};

/**
 * Asks whether the caller may create a run. It executes its assistant: who may not read that must not see through its runs
 * what it does.
 */
export const createRunGrants =
  (authorize: Authorize) =>
  async <Body extends RunBody | ThreadlessRunBody>(
    caller: Caller,
    body: Body,
    threadId: string | undefined,
  ): Promise<GrantedRun<Body>> => {
    const runId = newId();
    const { assistant_id: reference, metadata = {}, ...rest } = body;
    const { multitask_strategy, if_not_exists, after_seconds, ...kwargs } = rest;
    const assistantId = assistantIdOf(reference);
    const asked = {
      ...{ thread_id: threadId, assistant_id: assistantId, run_id: runId, status: "pending" as const },
      ...{ metadata, multitask_strategy, if_not_exists, after_seconds, kwargs },
    };
    const threads = await authorize(caller, "threads", "create_run", asked);
    const assistants = await authorize(caller, "assistants", "read", { assistant_id: assistantId });
    const { value } = threads;
    return {
      rights: { threads, assistants },
      body:
        value === asked
          ? body
          : revalidated(body, {
              ...value.kwargs,
              metadata: value.metadata,
              multitask_strategy: value.multitask_strategy,
              if_not_exists: value.if_not_exists,
              after_seconds: value.after_seconds,
            }),
      runId,
      authUser: authUserOf(caller),
    };
  };

export type RunGrants = ReturnType<typeof createRunGrants>;
