import { expect, test } from "vitest";
import type { EventLog, RunEvent } from "../../src/streaming/event-log.ts";
import { createHub } from "../../src/streaming/hub.ts";
import { NO_FAULTS } from "../../src/lib/faults.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** Moments between two statements, which a whole server can't be stopped at. */

const THREAD = "0199f000-0000-7000-8000-000000000001";
const RUN = "0199f000-0000-7000-8000-000000000002";

/** A hub on a log in memory, whose next answer to a reader can be held back. */
const aHub = () => {
  const stored: RunEvent[] = [];
  let held: Promise<void> | undefined;
  let heldPhase: Promise<void> | undefined;
  let phase: "pending" | "running" | "ended" = "pending";
  const eventLog = {
    append: async (_source: unknown, events: readonly RunEvent[]) => void stored.push(...events),
    async read(_runId: string, after: number) {
      await held;
      return stored.filter(({ seq }) => seq > after);
    },
    lastSeq: async () => stored.at(-1)?.seq ?? -1,
    opening: async () => stored[0],
  } as Partial<EventLog> as EventLog;
  const hub = createHub({
    eventLog,
    signals: { send: () => undefined, subscribe: () => () => undefined, close: async () => undefined },
    async phaseOf() {
      await heldPhase;
      return phase;
    },
    faults: NO_FAULTS,
    logger: listeningLogger().logger,
  });
  return {
    hub,
    stored,
    become: (next: typeof phase) => (phase = next),
    holdReads(): () => void {
      let release = (): void => undefined;
      held = new Promise((resolve) => (release = resolve));
      return release;
    },
    holdPhase(): () => void {
      let release = (): void => undefined;
      heldPhase = new Promise((resolve) => (release = resolve));
      return release;
    },
  };
};

test("a reader who has read the log goes on in memory where it is, not where it began", async () => {
  const { hub, become, holdReads } = aHub();
  const release = holdReads();
  // Its run waits for a slot.
  const reader = hub.read({ threadId: THREAD, runId: RUN, after: -1, resumable: true });
  const first = reader.next();
  // The run starts in this very process, and its first event is logged before the log answers the reader.
  become("running");
  const channel = hub.open({
    threadId: THREAD,
    runId: RUN,
    attempt: 1,
    firstSeq: 0,
    keep: true,
    resumable: true,
    logged: false,
  });
  channel.emit("metadata", () => "{}");
  await channel.seal();
  release();
  const ids = [await first].flat().map((event) => (typeof event === "string" ? event : event.seq));
  channel.emit("values", () => "{}");
  await channel.seal();
  become("ended");
  hub.end(channel);
  for (;;) {
    const events = await reader.next();
    if (typeof events === "string") {
      expect(events).toBe("ended");
      break;
    }
    ids.push(...events.map(({ seq }) => seq));
  }
  hub.close();
  expect(ids).toEqual([0, 1]);
});

test("a run that starts and ends here while the log is asked is read from memory: its reader misses nothing", async () => {
  const { hub, become, holdPhase } = aHub();
  const release = holdPhase();
  // Its run waits for a slot, and the database is slow to say so.
  const reader = hub.read({ threadId: THREAD, runId: RUN, after: -1, resumable: false });
  const first = reader.next();
  const channel = hub.open({
    threadId: THREAD,
    runId: RUN,
    attempt: 1,
    firstSeq: 0,
    keep: true,
    resumable: false,
    logged: false,
  });
  channel.emit("metadata", () => "{}");
  channel.emit("values", () => "{}");
  await channel.seal();
  become("ended");
  hub.end(channel);
  release();
  const events = [await first].flat();
  hub.close();
  expect(events.map((event) => (typeof event === "string" ? event : event.seq))).toEqual([0, 1]);
});
