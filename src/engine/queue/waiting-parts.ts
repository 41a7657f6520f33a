import type { Database } from "../../platform/database/database.ts";
import type { ClaimedRunRow } from "../../platform/database/tables.ts";

type Claim = (part: Database, limit: number) => Promise<ClaimedRunRow[]>;

/** The parts of a distributed database in which runs may wait, so that claims ask no others. At first all. */
export interface WaitingParts {
  /** A run of the thread may wait. Undefined: runs of any thread. */
  note(threadId?: string): void;
  notePart(part: Database): void;
  /** Claims from one part after the other, until `limit` is reached. Throws if no part gave runs, and one failed. */
  claim(limit: number, claim: Claim): Promise<ClaimedRunRow[]>;
}

export const createWaitingParts = (database: Database): WaitingParts => {
  const { parts, partOf } = database;
  if (parts === undefined || partOf === undefined)
    return { note() {}, notePart() {}, claim: (limit, claim) => claim(database, limit) };
  /** With the number of notes, because a run may be noted while its part is asked. */
  const waiting = new Map<Database, number>();
  const notePart = (part: Database): void => void waiting.set(part, (waiting.get(part) ?? 0) + 1);
  /** Other parts come first from now on. */
  const putLast = (part: Database): void => {
    const notes = waiting.get(part) ?? 1;
    waiting.delete(part);
    waiting.set(part, notes);
  };
  parts.forEach(notePart);
  return {
    note(threadId) {
      if (threadId === undefined) parts.forEach(notePart);
      else notePart(parts[partOf(threadId)]!);
    },
    notePart,
    async claim(limit, claim) {
      const claimed: ClaimedRunRow[] = [];
      const failures: unknown[] = [];
      for (const [part, notes] of [...waiting]) {
        const left = limit - claimed.length;
        if (left === 0) break;
        try {
          const runs = await claim(part, left);
          claimed.push(...runs);
          if (runs.length === left) putLast(part);
          else if (waiting.get(part) === notes) waiting.delete(part);
        } catch (error) {
          putLast(part);
          failures.push(error);
          // The runs that other parts gave must not wait for another one.
          if (claimed.length > 0) break;
        }
      }
      if (failures.length > 0 && claimed.length === 0) throw failures[0];
      return claimed;
    },
  };
};
