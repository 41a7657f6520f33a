import { v5 } from "uuid";
import { isUuid } from "../../platform/lib/ids.ts";

const NAMESPACE = "b1d7c3f4-5f0e-4c1b-9b57-0a5d2b6f3f61";

/** Threads of this server have UUIDs; any other name is mapped to a UUID. */
export const threadKey = (threadId: string): string =>
  isUuid(threadId) ? threadId.toLowerCase() : v5(threadId, NAMESPACE);
