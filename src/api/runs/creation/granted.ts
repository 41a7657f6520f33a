import { HandlerError } from "../../../access/auth/decisions.ts";
import type { Authorize } from "../../../access/authorize.ts";
import type { ValueOf } from "../../../access/values.ts";
import type { Caller } from "../../../access/caller.ts";
import { assistantIdOf } from "../../../platform/domain/assistant-ids.ts";
import { ThreadloomError } from "../../../platform/domain/errors.ts";
import type { Cipher } from "../../../platform/encryption/cipher.ts";
import { validated } from "../../../http/validation.ts";
import { newId } from "../../../platform/lib/ids.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { countedAs } from "../../../engine/queue/counted-as.ts";
import type { CreationRights } from "../../../engine/queue/sql/create.ts";
import { runBody, threadlessRunBody, type RunBody, type ThreadlessRunBody } from "../schemas.ts";

type AskedRun = ValueOf<"threads", "create_run">;

/** What somebody may create, and as whom. */
export interface GrantedRun<Body> {
  rights: CreationRights;
  /** What was asked for, as a handler of the project's may have changed it. */
  body: Body;
  runId: string;
  /** The user whose run it is; null if no user creates it. */
  authUser: JsonObject | null;
  /** By whom it is counted, see engine/queue/counted-as.ts. */
  caller: string | null;
}

export const authUserOf = (caller: Caller): JsonObject | null =>
  caller.kind === "user" ? caller.user : null;

/** Whether a handler has put something in the place of one of these, or has looked at it, and may have changed it within. */
const isTheSame = (asked: object, granted: object): boolean => {
  const fields = Object.entries(granted);
  return (
    fields.length === Object.keys(asked).length &&
    fields.every(([name, value]) => Object.is(value, (asked as Record<string, unknown>)[name]))
  );
};

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

/** The usual handler sets metadata, which are checked already: to check a whole request again takes as long as all handlers. */
const bodyOf = <Body extends RunBody | ThreadlessRunBody>(
  body: Body,
  asked: AskedRun,
  { metadata, kwargs, multitask_strategy, if_not_exists, after_seconds }: AskedRun,
): Body => {
  const others = { multitask_strategy, if_not_exists, after_seconds };
  const { multitask_strategy: strategy, if_not_exists: ifNot, after_seconds: after } = asked;
  const othersAsked = { multitask_strategy: strategy, if_not_exists: ifNot, after_seconds: after };
  if (isTheSame(othersAsked, others) && isTheSame(asked.kwargs, kwargs)) {
    return metadata === asked.metadata ? body : { ...body, metadata };
  }
  return revalidated(body, { ...kwargs, metadata, ...others });
};

/**
 * Asks whether the caller may create a run. It executes its assistant: who may not read that must not see through its runs
 * what it does.
 */
export const createRunGrants =
  (authorize: Authorize, cipher: Cipher | undefined) =>
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
    return {
      rights: { threads, assistants },
      body: bodyOf(body, asked, threads.value),
      runId,
      authUser: authUserOf(caller),
      caller: countedAs(cipher, caller),
    };
  };
