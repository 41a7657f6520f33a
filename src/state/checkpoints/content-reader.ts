import { randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { StateStorageError } from "../../platform/domain/errors.ts";
import { setProperty, type Properties } from "../../platform/lib/properties.ts";
import { hasReferences, referencesIn, referenceTo, withoutReferences } from "../values/large-strings.ts";
import { revive } from "../values/reviving.ts";
import { toWireJson } from "../values/wire-json.ts";
import { fromStoredContent, isReferences } from "./contents.ts";

/** A content in memory. Its parsed forms are made on demand and never change. */
export interface Content {
  readonly hash: string;
  /** As stored, with references. */
  readonly text: string;
  /** Distinct. */
  readonly references: readonly string[];
  /** As one value. */
  tree?: unknown;
  /** As elements of a list. */
  trees?: readonly unknown[];
  /** The elements as clients see them, with commas. */
  wire?: string;
}

/** Begins a string that stands for a reference while a text is parsed. A caller can't know it. */
const PART = randomUUID();

/** Approximate memory of a text with its parsed forms. */
const BYTES_PER_CHARACTER = 4;
const BYTES_PER_CONTENT = 500;

/** Contents of all threads by hash. They never change, so the cache may be incomplete, but never wrong. */
export class ContentCache {
  private readonly contents: LRUCache<string, Content>;

  constructor(bytesAtMost: number) {
    this.contents = new LRUCache({
      maxSize: bytesAtMost,
      sizeCalculation: ({ text }) => text.length * BYTES_PER_CHARACTER + BYTES_PER_CONTENT,
    });
  }

  get byteCount(): number {
    return this.contents.calculatedSize;
  }

  get(hash: string): Content | undefined {
    return this.contents.get(hash);
  }

  add(hash: string, text: string): Content {
    const content: Content = { hash, text, references: [...new Set(referencesIn(text))] };
    this.contents.set(hash, content);
    return content;
  }
}

export interface WantedContent {
  threadId: string;
  hash: string;
}

interface StoredContent {
  hash: string;
  /** As in the row. */
  content: string;
  /** With commas. */
  contents: string | null;
  /** The object that has the content. */
  objectId: string | null;
}

/** PostgreSQL fetches only texts that fit, and the first. Index: checkpoint_contents_pkey. */
const READ_CONTENTS = statement(
  { threadIds: "uuid[]", hashes: "uuid[]", bytesAtMost: "bigint" },
  (sql) => `select hash, content, array_to_string(contents, ',') as contents, object_id as "objectId" from (
  select k.hash, k.content, k.contents, k.object_id, coalesce(sum(coalesce(k.object_bytes, octet_length(k.content)))
    over (order by w.place rows between unbounded preceding and 1 preceding), 0) as before
  from unnest(${sql.threadIds}, ${sql.hashes}) with ordinality as w (thread_id, hash, place)
  cross join lateral (
    select * from threadloom.checkpoint_contents c where c.thread_id = w.thread_id and c.hash = w.hash
  ) as k
) as k where before < ${sql.bytesAtMost}`,
);

/** Memory must not grow with the number of contents that are asked for. */
const BYTES_AT_ONCE = 1024 * 1024;
const CONTENTS_AT_ONCE = 1_000;
const OBJECTS_AT_ONCE = 8;

/** The texts of the first contents, from the object store if they are there. Leaves out missing rows and objects. */
export const readContents = async (
  queryable: Queryable,
  wanted: readonly WantedContent[],
  bytesAtMost = BYTES_AT_ONCE,
): Promise<Array<{ hash: string; text: string }>> => {
  const asked = wanted.slice(0, CONTENTS_AT_ONCE);
  const rows = await READ_CONTENTS.query<StoredContent>(queryable, {
    threadIds: asked.map(({ threadId }) => threadId),
    hashes: asked.map(({ hash }) => hash),
    bytesAtMost,
  });
  const { encryption, objects } = queryable;
  const opened = ({ hash, contents }: StoredContent, stored: string) => {
    const text = encryption.decryptedValue("checkpoint_contents", "content", stored, { hash });
    return { hash, text: contents === null ? text : fromStoredContent(text, contents.split(",")) };
  };
  const textOf = async (row: StoredContent) => {
    if (row.objectId === null) return [opened(row, row.content)];
    if (objects === undefined)
      throw new StateStorageError("A stored value is in an object store, and OBJECT_STORE_URL is not set.");
    try {
      return [opened(row, await objects.read(row.objectId))];
    } catch (error) {
      // Fails the reads that need it, as a missing row does, and not those of other threads.
      if (error instanceof StateStorageError) return [];
      throw error;
    }
  };
  if (rows.every(({ objectId }) => objectId === null)) return rows.map((row) => opened(row, row.content));
  const texts: Array<{ hash: string; text: string }> = [];
  for (let start = 0; start < rows.length; start += OBJECTS_AT_ONCE)
    texts.push(...(await Promise.all(rows.slice(start, start + OBJECTS_AT_ONCE).map(textOf))).flat());
  return texts;
};

/** The contents that one read needs. It keeps them until it ends, whatever the cache drops. */
export class Contents {
  private readonly held = new Map<string, Content>();

  constructor(private readonly cache: ContentCache) {}

  add(hash: string, text: string): void {
    this.held.set(hash, this.cache.add(hash, text));
  }

  /** The hashes of contents that the texts need, also through other contents, and that are not here. Omits `seen`. */
  missing(texts: Iterable<string>, seen = new Set<string>()): string[] {
    const missing = new Set<string>();
    const visit = (hash: string): void => {
      if (seen.has(hash)) return;
      seen.add(hash);
      const content = this.find(hash);
      if (content === undefined) missing.add(hash);
      else content.references.forEach(visit);
    };
    for (const text of texts) if (hasReferences(text)) referencesIn(text).forEach(visit);
    return [...missing];
  }

  /** Throws StateStorageError if the content is missing. */
  content(hash: string): Content {
    const content = this.find(hash);
    if (content === undefined) throw new StateStorageError(`The stored content ${hash} is missing.`);
    return content;
  }

  /** The value's tree. It is shared, so nobody may change it. */
  tree(text: string): unknown {
    if (!hasReferences(text)) return JSON.parse(text);
    const content = this.aloneIn(text);
    if (content !== undefined) return (content.tree ??= this.tree(content.text));
    return this.withParts(JSON.parse(withoutReferences(text, (hash) => `"${PART}${hash}"`)));
  }

  /** Values share the trees of a list that all of them hold: as text, a list in 1,000 tasks exceeds any string. */
  private withParts(tree: unknown): unknown {
    const reference = referenceOf(tree);
    if (reference !== undefined) return this.tree(reference);
    if (Array.isArray(tree))
      return tree.flatMap((part: unknown) => {
        const elements = referenceOf(part);
        if (elements === undefined) return [this.withParts(part)];
        return this.leavesOf(`[${elements}]`)!.flatMap((leaf) => this.trees(leaf));
      });
    if (typeof tree !== "object" || tree === null) return tree;
    const filled: Properties = {};
    for (const [key, part] of Object.entries(tree)) {
      const longKey = referenceOf(key);
      setProperty(filled, longKey === undefined ? key : (this.tree(longKey) as string), this.withParts(part));
    }
    return filled;
  }

  /** The leaves of a stored list (lists.ts). Undefined if the text is another value. */
  leavesOf(text: string): Content[] | undefined {
    if (!hasReferences(text)) return undefined;
    const content = this.aloneIn(text);
    if (content !== undefined) return this.leavesOf(content.text);
    if (!text.startsWith("[") || !isReferences(text.slice(1, -1))) return undefined;
    const leaves: Content[] = [];
    const visit = (references: string): void => {
      for (const hash of referencesIn(references)) {
        const content = this.content(hash);
        if (isReferences(content.text)) visit(content.text);
        else leaves.push(content);
      }
    };
    visit(text);
    return leaves;
  }

  /** The text of a stored list, which may itself be a content. */
  listText(text: string): string {
    return this.aloneIn(text)?.text ?? text;
  }

  /** The elements of a leaf. */
  trees(leaf: Content): readonly unknown[] {
    return (leaf.trees ??= JSON.parse(`[${this.whole(leaf.text)}]`) as unknown[]);
  }

  /** The value as clients see it. A leaf is converted once per process. */
  wire(text: string): string {
    const leaves = this.leavesOf(text);
    if (leaves === undefined) return toWireJson(revive(this.tree(text)));
    return `[${leaves
      .map((leaf) => (leaf.wire ??= toWireJson(revive(this.trees(leaf))).slice(1, -1)))
      .join(",")}]`;
  }

  /** All that were found for this read. */
  hashes(): Iterable<string> {
    return this.held.keys();
  }

  private find(hash: string): Content | undefined {
    const held = this.held.get(hash);
    if (held !== undefined) return held;
    const cached = this.cache.get(hash);
    if (cached !== undefined) this.held.set(hash, cached);
    return cached;
  }

  private whole(text: string): string {
    return withoutReferences(text, (hash) => this.whole(this.content(hash).text));
  }

  private aloneIn(text: string): Content | undefined {
    const [hash, ...others] = isReferences(text) ? referencesIn(text) : [];
    return hash === undefined || others.length > 0 ? undefined : this.content(hash);
  }
}

const referenceOf = (part: unknown): string | undefined =>
  typeof part === "string" && part.startsWith(PART) ? referenceTo(part.slice(PART.length)) : undefined;
