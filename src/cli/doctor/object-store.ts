import { randomUUID } from "node:crypto";
import type { Environment } from "../../platform/config/resolve.ts";
import { StartError, StateStorageError } from "../../platform/domain/errors.ts";
import { openObjectStore } from "../../platform/database/object-store.ts";
import { objectStoreIn } from "../own-database.ts";
import { fail, ok, warn, type Check } from "./checks.ts";

const NAME = "Object store";

/** Stores, reads and removes an object, as servers do. Undefined without an object store. */
export const checkObjectStore = async (environment: Environment): Promise<Check | undefined> => {
  const setup = objectStoreIn(environment);
  if (setup === undefined) return undefined;
  const text = "threadloom doctor";
  const key = `doctor-${randomUUID()}`;
  try {
    const objects = await openObjectStore(setup);
    try {
      await objects.write(key, text);
      const read = await objects.read(key);
      await objects.remove(key);
      const missing = await objects.read(key).catch((error: unknown) => error);
      if (!(missing instanceof StateStorageError))
        return warn(
          NAME,
          `${setup.url} does not say that an object is missing, so a server would wait for it as in an outage`,
          "Servers also need the right s3:ListBucket on the bucket.",
        );
      if (read !== text)
        return fail(
          NAME,
          `${setup.url} returns other texts than it was given`,
          "Check whether a proxy changes the objects.",
        );
      return ok(NAME, `${setup.url} takes, returns and removes objects`);
    } finally {
      objects.close();
    }
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error && !(error instanceof StartError);
    const reason = cause ? (error.cause as Error).message || (error.cause as Error).name : "";
    return fail(
      NAME,
      `${setup.url}: ${(error as Error).message}${reason === "" ? "" : ` ${reason}`}`,
      "Check OBJECT_STORE_URL and OBJECT_STORE_ENDPOINT. Servers need the rights s3:PutObject, s3:GetObject and s3:DeleteObject on the objects of this bucket.",
    );
  }
};
