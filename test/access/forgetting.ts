/*
 * Not run, but checked by `npm run typecheck`: each line that forgets who is calling is an error there, and one that
 * no longer is makes the check fail ("Unused '@ts-expect-error' directive").
 */
import type { Authorize } from "../../src/access/authorize.ts";
import type { Caller } from "../../src/access/caller.ts";
import type { Visibility } from "../../src/access/visibility.ts";
import type { AssistantRepository } from "../../src/api/assistants/repository.ts";
import type { RecordService as AssistantRecordService } from "../../src/api/assistants/records/service.ts";
import type { RoutePlugin } from "../../src/http/route-plugin.ts";
import type { RunRepository } from "../../src/api/runs/repository.ts";
import type { RecordService as RunRecordService } from "../../src/api/runs/records/service.ts";
import type { StoreRepository } from "../../src/api/store/repository.ts";
import type { StoreService } from "../../src/api/store/service.ts";
import type { RecordService } from "../../src/api/threads/records/service.ts";
import type { ThreadRepository } from "../../src/api/threads/repository.ts";

const ID = "00000000-0000-7000-8000-000000000000";
const RUN = { threadId: ID, runId: ID };

/** A route that forgets the caller. */
export const aRoute =
  (
    assistants: AssistantRecordService,
    threads: RecordService,
    runs: RunRecordService,
    store: StoreService,
  ): RoutePlugin =>
  async (app) => {
    app.get("/forgetful", async (request) => {
      const caller: Caller = request.caller;
      await assistants.get(caller, ID);
      // @ts-expect-error a route asks a service for nobody
      await assistants.get(ID);
      await threads.read(caller, ID);
      // @ts-expect-error a route asks a service for nobody
      await threads.read(ID);
      // @ts-expect-error a route asks a service for nobody
      await runs.get(RUN);
      // @ts-expect-error a route asks a service for nobody
      await store.get({ namespace: ["n"], key: "k", refresh_ttl: undefined });
      // @ts-expect-error what a client says of itself is no caller
      await assistants.get(request.headers["x-api-key"], ID);
      // @ts-expect-error no such kind of caller
      await assistants.get({ kind: "admin" }, ID);
    });
  };

/** A service that forgets to ask. */
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
  // @ts-expect-error nobody was asked
  await assistants.find(ID);
  // @ts-expect-error a caller is not yet allowed to see anything
  await assistants.find(caller, ID);
  // @ts-expect-error the answer was not waited for
  await assistants.find(authorize(caller, "assistants", "read", { assistant_id: ID }), ID);
  // @ts-expect-error what is wanted was not said
  await authorize(caller, "assistants", "read");
  // @ts-expect-error what is stored is what was granted, and reading grants nothing to store
  await assistants.create(visibility, { assistantId: ID, graphId: "agent" });
  // @ts-expect-error the same of a thread
  await threads.insert(await authorize(caller, "threads", "read", { thread_id: ID }), {});
  // @ts-expect-error nobody was asked
  await threads.find(ID);
  // @ts-expect-error what was asked for is another resource
  await threads.find(visibility, ID);
  // @ts-expect-error what was asked for is another resource
  await runs.find(visibility, RUN);
  // @ts-expect-error nobody was asked
  await runs.find(RUN);
  // @ts-expect-error nobody was asked
  await store.get([{ namespace: ["n"], key: "k", refreshTtl: false }]);
  // @ts-expect-error no such action of this resource
  await authorize(caller, "assistants", "create_run", {});
};

/** A visibility that authorization did not make. */
export const forged = (genuine: Visibility<"threads">): Visibility<"threads">[] => [
  genuine,
  // @ts-expect-error it looks the same, but its private field is not there
  { resource: "threads", condition: () => "true", where: genuine.where },
  // @ts-expect-error a copy has lost its private field
  { ...genuine },
];
