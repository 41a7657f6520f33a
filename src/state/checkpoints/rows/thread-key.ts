import { v5 } from "uuid";
import { isUuid } from "../../../platform/lib/ids.ts";

const NAMESPACE = "b1d7c3f4-5f0e-4c1b-9b57-0a5d2b6f3f61";

/**
 * The key under which a thread is stored. Threads of this server have UUIDs; for graphs that name theirs otherwise,
 * the name stands for a UUID made from it.
 */
export const threadKey = (threadId: string): string =>
  isUuid(threadId) ? threadId.toLowerCase() : v5(threadId, NAMESPACE);
