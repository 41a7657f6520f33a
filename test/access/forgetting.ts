/*
 * `npm run typecheck` checks this file; it is never run. Each line that forgets the caller is a type error, and a line that no longer is
 * one makes the check fail ("Unused '@ts-expect-error' directive").
 */
import type { Authorize } from "../../src/access/authorize.ts";
import type { Caller } from "../../src/access/caller.ts";
import type { Visibility } from "../../src/access/visibility.ts";
import type { AssistantRepository } from "../../src/api/assistants/repository.ts";
import type { AssistantService } from "../../src/api/assistants/service.ts";
import type { RoutePlugin } from "../../src/http/route-plugin.ts";
import type { RunRepository } from "../../src/api/runs/repository.ts";
import type { RecordService as RunRecordService } from "../../src/api/runs/records.ts";
import type { StoreRepository } from "../../src/api/store/repository.ts";
import type { StoreService } from "../../src/api/store/service.ts";
import type { RecordService } from "../../src/api/threads/records.ts";
import type { ThreadRepository } from "../../src/api/threads/repository.ts";

const ID = "00000000-0000-7000-8000-000000000000";
const RUN = { threadId: ID, runId: ID };

export const aRoute =
  (
    assistants: AssistantService,
    threads: RecordService,
    runs: RunRecordService,
    store: StoreService,
  ): RoutePlugin =>
  async (app) => {
    app.get("/forgetful", async (request) => {
      const caller: Caller = request.caller;
      await assistants.get(caller, ID);
      // @ts-expect-error a route calls a service without a caller
      await assistants.get(ID);
      await threads.read(caller, ID);
      // @ts-expect-error a route calls a service without a caller
      await threads.read(ID);
      // @ts-expect-error a route calls a service without a caller
      await runs.get(RUN);
      // @ts-expect-error a route calls a service without a caller
      await store.get({ namespace: ["n"], key: "k", refresh_ttl: undefined });
      // @ts-expect-error a header sent by a client is not a caller
      await assistants.get(request.headers["x-api-key"], ID);
      // @ts-expect-error this kind of caller does not exist
      await assistants.get({ kind: "admin" }, ID);
    });
  };

export const aService = async (
  authorize: Authorize,
  caller: Caller,
  assistants: AssistantRepository,
  threads: ThreadRepository,
  runs: RunRepository,
  store: StoreRepository,
): Promise<void> => {
  const visibility = await authorize(caller, "assistants", "read", { assistant_id: ID });
  await assistants.find(visibility, ID);
  // @ts-expect-error the service did not authorize
  await assistants.find(ID);
  // @ts-expect-error a caller is not a visibility
  await assistants.find(caller, ID);
  // @ts-expect-error the service did not await the answer
  await assistants.find(authorize(caller, "assistants", "read", { assistant_id: ID }), ID);
  // @ts-expect-error the call does not say what it wants to read
  await authorize(caller, "assistants", "read");
  // @ts-expect-error only granted values are stored, and reading grants none
  await assistants.create(visibility, { assistantId: ID, graphId: "agent" });
  // @ts-expect-error only granted values are stored, and reading grants none
  await threads.insert(await authorize(caller, "threads", "read", { thread_id: ID }), {});
  // @ts-expect-error the service did not authorize
  await threads.find(ID);
  // @ts-expect-error the service authorized another resource
  await threads.find(visibility, ID);
  // @ts-expect-error the service authorized another resource
  await runs.find(visibility, RUN);
  // @ts-expect-error the service did not authorize
  await runs.find(RUN);
  // @ts-expect-error the service did not authorize
  await store.get([{ namespace: ["n"], key: "k", refreshTtl: false }]);
  // @ts-expect-error this resource has no such action
  await authorize(caller, "assistants", "create_run", {});
};

/** A visibility that authorization did not create. */
export const forged = (genuine: Visibility<"threads">): Visibility<"threads">[] => [
  genuine,
  // @ts-expect-error the object has the same shape, but not the private field
  { resource: "threads", condition: () => "true", where: genuine.where },
  // @ts-expect-error a copy loses the private field
  { ...genuine },
];
