import { expect, test } from "vitest";
import { Encryption } from "../../../src/platform/encryption/encryption.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import type { RunRow } from "../../../src/platform/database/tables.ts";
import { createRunCreation, type RunCreationParts } from "../../../src/api/runs/creation/creation.ts";
import type { RunRepository } from "../../../src/api/runs/repository.ts";
import { requestedRun } from "../../../src/api/runs/creation/requests.ts";
import { threadlessRunBody } from "../../../src/api/runs/schemas.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { ALL_RIGHTS } from "../../helpers/access.ts";

/** A moment at which a whole server cannot be paused: a batch was stored, its answer was lost, and one of its runs is gone. */
test("each run of a batch that is found after a lost answer is waited for as requested", async () => {
  const [removed, soon, late] = [3_600, 0, 60].map((after_seconds) =>
    requestedRun(
      threadlessRunBody.parse({ assistant_id: "agent", input: {}, after_seconds }),
      { kind: "threadless", keep: true },
      { runId: newId(), authUser: null, caller: null, readerId: null },
    ),
  );
  const woken: [string, number][] = [];
  const { createAll } = createRunCreation({
    database: {
      encryption: new Encryption(undefined),
      transaction: () => Promise.reject(Object.assign(new Error("cut"), { code: "ECONNRESET" })),
    } as Partial<Database> as Database,
    repository: {
      find: async (_, { runId }) =>
        runId === removed!.run.runId ? undefined : ({ run_id: runId } as RunRow),
    } as Partial<RunRepository> as RunRepository,
    announcements: {
      stop: () => undefined,
      ended: () => undefined,
      available: (run, afterSeconds) => void woken.push([run.run_id, afterSeconds]),
    },
    recursionLimitMax: 100,
  } as Partial<RunCreationParts> as RunCreationParts);
  await createAll([removed!, soon!, late!].map((run) => ({ ...run, rights: ALL_RIGHTS })));
  expect(woken).toEqual([
    [soon!.run.runId, 0],
    [late!.run.runId, 60],
  ]);
});
