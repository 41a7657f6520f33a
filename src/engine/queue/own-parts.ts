import { createHash, randomInt } from "node:crypto";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";

/** Servers of a part: if one dies, the other goes on. */
const OWNERS = 2;
/** Longer than between two signs of life. Too short a time costs polls only, because more servers then own a part. */
const ALIVE_SECONDS = 8;

const LIST_SERVERS = statement(
  { graphIds: "text[]" },
  (sql) => `select w.worker_id from threadloom.workers w
  where w.graph_ids = ${sql.graphIds} and w.seen_at > now() - interval '${ALIVE_SECONDS} seconds'`,
);

const hashOf = (serverId: string): number => createHash("sha1").update(serverId).digest().readUInt32LE();

/** Mixes all bits, as the last step of MurmurHash3. */
const weightOf = (server: number, part: number): number => {
  let bits = Math.imul(server ^ Math.imul(part + 1, 0x9e3779b1), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
};

/**
 * Divides the parts of a distributed database between the servers that host the same graphs, so that not every server asks
 * every part for work. Each part has the servers with its two highest weights (rendezvous hashing): a server that comes
 * or goes changes no other owner.
 */
export const createOwnParts = (database: Database, processId: string) => {
  const all = [...(database.parts ?? [database]).keys()];
  let own: readonly number[] = all;
  let others: readonly number[] = [];

  const divide = (servers: readonly string[]): void => {
    const self = hashOf(processId);
    const rivals = servers.filter((id) => id !== processId).map(hashOf);
    const isOwn = (part: number): boolean => {
      const weight = weightOf(self, part);
      let heavier = 0;
      for (const rival of rivals) {
        if (weightOf(rival, part) > weight) heavier += 1;
        if (heavier === OWNERS) return false;
      }
      return true;
    };
    own = all.filter(isOwn);
    const ofThis = new Set(own);
    others = all.filter((part) => !ofThis.has(part));
  };

  const within = (numbers: () => readonly number[]): Database => database.withParts?.(numbers) ?? database;

  return {
    /** Statements that name no thread reach the parts of this server. It may have none. */
    own: within(() => own),
    /** As `own`, and another part each time: its servers may be full, or dead. */
    ownAndAnother: within(() => (others.length === 0 ? own : [...own, others.at(randomInt(others.length))!])),
    isOwn: (part: number): boolean => own.includes(part),
    /** Divides again. All parts are of this server while the others are unknown. */
    async learnServers(graphIds: readonly string[]): Promise<void> {
      if (database.withParts === undefined) return;
      try {
        const servers = await LIST_SERVERS.query<{ worker_id: string }>(database, { graphIds });
        divide(servers.map(({ worker_id: id }) => id));
      } catch (error) {
        divide([]);
        throw error;
      }
    },
  };
};

export type OwnParts = ReturnType<typeof createOwnParts>;
