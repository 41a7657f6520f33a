import type { Connection } from "../../server/connection.tsx";
import { statusOf } from "../../server/api-error.ts";
import { keepText, keptText } from "../../server/tab-storage.ts";
import type { Input } from "./input.ts";

/** A queued input that this tab took back when the user stopped the run before it. */
export interface HeldInput {
  id: string;
  input: Input;
}

const queuedName = (threadId: string): string => `queued ${threadId}`;
const heldName = (threadId: string): string => `held ${threadId}`;
const QUEUED_AT_MOST = 50;
const LISTED_AT_MOST = 1_000;

const listIn = (name: string): unknown[] => {
  const list: unknown = JSON.parse(keptText(name) ?? "[]");
  return Array.isArray(list) ? list : [];
};

export const heldInputs = (threadId: string): HeldInput[] => listIn(heldName(threadId)) as HeldInput[];

export const keepHeld = (threadId: string, held: readonly HeldInput[]): void =>
  keepText(heldName(threadId), held.length === 0 ? "" : JSON.stringify(held));

export const rememberQueued = (threadId: string, runId: string): void =>
  keepText(
    queuedName(threadId),
    JSON.stringify([...listIn(queuedName(threadId)), runId].slice(-QUEUED_AT_MOST)),
  );

interface GivenRun {
  kwargs?: { input?: Input | null } | null;
}

/**
 * Withdraws the waiting runs of this tab, because the server would start the next one at once. Runs of others
 * stay.
 */
export const takeBackQueued = async ({ request }: Connection, threadId: string): Promise<HeldInput[]> => {
  const own = listIn(queuedName(threadId)) as string[];
  if (own.length === 0) return [];
  const waiting = await request<{ run_id: string }[]>(
    "GET",
    `/threads/${threadId}/runs?status=pending&limit=${LISTED_AT_MOST}&select=run_id`,
  );
  const ids = new Set(waiting.map(({ run_id: id }) => id));
  const taken: HeldInput[] = [];
  for (const id of own.filter((one) => ids.has(one))) {
    const { kwargs } = await request<GivenRun>("GET", `/threads/${threadId}/runs/${id}`);
    try {
      await request("POST", "/runs/cancel", { thread_id: threadId, run_ids: [id], status: "pending" });
    } catch (error) {
      // It has started.
      if (statusOf(error) === 404) continue;
      throw error;
    }
    if (kwargs?.input != null) taken.push({ id, input: kwargs.input });
  }
  keepText(queuedName(threadId), "");
  return taken;
};
