import type { Database } from "../../platform/database/database.ts";
import type { ClaimedRunRow } from "../../platform/database/tables.ts";

type Claim = (part: Database, limit: number) => Promise<ClaimedRunRow[]>;

/** The parts of a distributed database in which runs may wait, so that claims ask no others. At first all. */
export interface WaitingParts {
  /** False: no part is left to ask. */
  readonly areLeft: boolean;
  /** A run of the thread may wait. Undefined: runs of any thread. */
  note(threadId?: string): void;
  notePart(part: Database): void;
  /** Asks one part after the other until one gives runs. Throws if none did, and one failed. */
  claim(limit: number, claim: Claim): Promise<ClaimedRunRow[]>;
}

export const createWaitingParts = (database: Database): WaitingParts => {
  const { parts, partOf } = database;
  if (parts === undefined || partOf === undefined)
    return { areLeft: false, note() {}, notePart() {}, claim: (limit, claim) => claim(database, limit) };
  /** With the number of the last note, because a run may be noted while its part is asked. */
  const waiting = new Map<Database, number>();
  let notes = 0;
  const notePart = (part: Database): void => void waiting.set(part, (notes += 1));
  /** Other parts come first from now on. */
  const putLast = (part: Database): void => {
    waiting.delete(part);
    notePart(part);
  };
  parts.forEach(notePart);
  return {
    get areLeft() {
      return waiting.size > 0;
    },
    note(threadId) {
      if (threadId === undefined) parts.forEach(notePart);
      else notePart(parts[partOf(threadId)]!);
    },
    notePart,
    async claim(limit, claim) {
      const failures: unknown[] = [];
      for (const [part, note] of [...waiting]) {
        try {
          const runs = await claim(part, limit);
          if (runs.length === limit) putLast(part);
          else if (waiting.get(part) === note) waiting.delete(part);
          // Claimed runs must not wait for another part.
          if (runs.length > 0) return runs;
        } catch (error) {
          putLast(part);
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
      return [];
    },
  };
};
