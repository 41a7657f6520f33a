import { HandlerError } from "../../../access/auth/decisions.ts";
import type { Authorize } from "../../../access/authorize.ts";
import type { ValueOf } from "../../../access/values.ts";
import type { Caller } from "../../../access/caller.ts";
import { assistantIdOf } from "../../../platform/domain/assistant-ids.ts";
import { ThreadloomError } from "../../../platform/domain/errors.ts";
import type { Encryption } from "../../../platform/database/database.ts";
import { validated } from "../../../http/validation.ts";
import { newId } from "../../../platform/lib/ids.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { countedAs } from "../../../engine/queue/counted-as.ts";
import type { CreationRights } from "../../../engine/queue/sql/create.ts";
import { runBody, threadlessRunBody, type RunBody, type ThreadlessRunBody } from "../schemas.ts";

type AskedRun = ValueOf<"threads", "create_run">;

export interface GrantedRun<Body> {
  rights: CreationRights;
  /** With the changes of the project's handler. */
  body: Body;
  runId: string;
  /** Null if no user creates the run. */
  authUser: JsonObject | null;
  /** Limits count the run under this name, see engine/queue/counted-as.ts. */
  caller: string | null;
}

export const authUserOf = (caller: Caller): JsonObject | null =>
  caller.kind === "user" ? caller.user : null;

/** A handler gets copies, so an object that went through one counts as changed. */
const isTheSame = (asked: object, granted: object): boolean => {
  const fields = Object.entries(granted);
  return (
    fields.length === Object.keys(asked).length &&
    fields.every(([name, value]) => Object.is(value, (asked as Record<string, unknown>)[name]))
  );
};

/** A handler's changes must pass the client's schema. */
const revalidated = <Body extends RunBody | ThreadlessRunBody>(body: Body, given: object): Body => {
  try {
    const schema = "on_completion" in body ? threadlessRunBody : runBody;
    return validated(schema, { ...body, ...given }, "The run") as Body;
  } catch (cause) {
    if (!(cause instanceof ThreadloomError)) throw cause;
    throw new HandlerError("The handler of threads:create_run left a run that can't be taken.", { cause });
  }
};

/** Without a handler, the request is valid already. */
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

/** The caller must be able to read the assistant, since the run would reveal it. */
export const createRunGrants =
  (authorize: Authorize, encryption: Encryption) =>
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
      caller: countedAs(encryption, caller),
    };
  };
