/**
 * What nearly all checkpoints of a graph have in common: the names of channels and nodes for the versions in a row, and
 * some metadata. All threads share them, so a new thread stores none.
 */

import type { Checkpoint } from "@langchain/langgraph-checkpoint";
import { LRUCache } from "lru-cache";
import type { Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { contentHash } from "./contents.ts";

/** `unversioned`: channels that have values but no versions (`__pregel_tasks`). */
export type Names = readonly [
  channels: string[],
  nodes: ReadonlyArray<readonly [node: string, channels: string[]]>,
  unversioned: string[],
];

export const namesOf = ({ channel_values, channel_versions, versions_seen }: Checkpoint): Names => [
  Object.keys(channel_versions),
  Object.entries(versions_seen).map(([node, seen]) => [node, Object.keys(seen)]),
  Object.keys(channel_values).filter((name) => !Object.hasOwn(channel_versions, name)),
];

export interface NewNames {
  hash: string;
  names: string;
  /** JSON that is exact as jsonb. */
  metadata: string;
}

/** Graphs that create nodes at run time have many names. */
const KNOWN_AT_MOST = 1_000;

/** Ordered, so that servers that store the same names at once don't deadlock. */
const STORE = statement(
  { hashes: "uuid[]", names: "text[]", metadata: "text[]" },
  (sql) => `insert into threadloom.checkpoint_names (hash, names, metadata)
  select hash, names, metadata::jsonb from unnest(${sql.hashes}, ${sql.names}, ${sql.metadata}) as n (hash, names, metadata)
  order by hash on conflict do nothing`,
);

/** SQL: rows of the table are few, and never changed or deleted. Index: checkpoint_names_pkey. */
export const NAMES_OF_C = "join threadloom.checkpoint_names n on n.hash = c.names";
export const METADATA_OF_C = "(n.metadata || c.metadata)";

export class KnownNames {
  private readonly hashes = new LRUCache<string, string>({ max: KNOWN_AT_MOST });
  private readonly parsed = new LRUCache<string, Names>({ max: KNOWN_AT_MOST });
  private readonly stored = new LRUCache<string, true>({ max: KNOWN_AT_MOST });

  parse(text: string): Names {
    let names = this.parsed.get(text);
    if (names === undefined) this.parsed.set(text, (names = JSON.parse(text) as Names));
    return names;
  }

  /** Undefined `unstored`: the table has them. */
  refer(names: Names, metadata: string): { hash: string; unstored: NewNames | undefined } {
    const text = JSON.stringify(names);
    const key = `${text}\n${metadata}`;
    let hash = this.hashes.get(key);
    if (hash === undefined) this.hashes.set(key, (hash = contentHash(key)));
    return { hash, unstored: this.stored.has(hash) ? undefined : { hash, names: text, metadata } };
  }

  /** On the disk before the statement of the checkpoints. */
  async store(queryable: Queryable, given: readonly NewNames[]): Promise<void> {
    const all = [...new Map(given.map((names) => [names.hash, names])).values()];
    await STORE.query(queryable, {
      hashes: all.map(({ hash }) => hash),
      names: all.map(({ names }) => names),
      metadata: all.map(({ metadata }) => metadata),
    });
    for (const { hash } of all) this.stored.set(hash, true);
  }
}
