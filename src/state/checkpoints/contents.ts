/**
 * A stored text is JSON in which references stand for some of its parts. A referenced part is a content: a row of
 * `checkpoint_contents`, named by the hash of its text, once in a thread, and never changed. A content may refer to
 * others. Without references, the text is again the JSON of the value.
 */

import { createHash } from "node:crypto";
import type { Encryption } from "../../platform/database/database.ts";
import { referenceTo, referencesIn, takeOutLargeStrings } from "../values/large-strings.ts";

/** A longer text becomes a content, to which later checkpoints refer. */
export const INLINE_CHARACTERS_AT_MOST = 512;

/** A longer string is a content of its own, because a task's write and the message in the list both have it. */
const STRING_CHARACTERS = 4_096;

/**
 * Half of the SHA-256 as a UUID. With `encryption`, a keyed digest, so that the hash can't confirm a guess of the text.
 */
export const contentHash = (text: string, encryption?: Encryption): string => {
  const hex = encryption?.digest(text) ?? createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
};

export interface NewContent {
  hash: string;
  text: string;
}

const REFERENCES = /^(\u0001[^\u0001]*\u0001,)*\u0001[^\u0001]*\u0001$/; // eslint-disable-line no-control-regex

/** Whether a text holds references alone, with commas. */
export const isReferences = (text: string): boolean => text.startsWith("\u0001") && REFERENCES.test(text);

/**
 * A content as its row holds it. A list of references needs no text, because the row also has the hashes, for the
 * deletion of what nothing refers to.
 */
export const toStoredContent = (text: string): { text: string; hashes: string[] } => {
  const hashes = referencesIn(text);
  if (isReferences(text)) return { text: "", hashes };
  if (text.startsWith("[") && isReferences(text.slice(1, -1))) return { text: "[]", hashes };
  return { text, hashes: [...new Set(hashes)] };
};

export const fromStoredContent = (text: string, hashes: readonly string[]): string => {
  if (hashes.length === 0 || text.length > 2) return text;
  const references = hashes.map(referenceTo).join(",");
  return text === "" ? references : `[${references}]`;
};

/** The contents that a writer of a thread has to store. Each is sent once. */
export class NewContents {
  private readonly known = new Set<string>();
  private contents: NewContent[] = [];

  constructor(private readonly encryption: Encryption) {}

  take(): NewContent[] {
    const taken = this.contents;
    this.contents = [];
    return taken;
  }

  /** The thread has this content, and no prune removes it while the writer may write. */
  remember(hash: string): void {
    this.known.add(hash);
  }

  /** Makes the text a content. Returns the hash, and the reference that stands for the text. */
  add(text: string): { hash: string; reference: string } {
    const hash = contentHash(text, this.encryption);
    if (!this.known.has(hash)) {
      this.known.add(hash);
      this.contents.push({ hash, text });
    }
    return { hash, reference: referenceTo(hash) };
  }

  /** Replaces each large string of a JSON text by a reference. */
  withoutLargeStrings(text: string): string {
    return takeOutLargeStrings(text, (literal) => this.add(literal).hash, STRING_CHARACTERS);
  }

  /** The text as a row holds it: itself, or a reference to it. */
  inline(text: string, charactersAtMost = INLINE_CHARACTERS_AT_MOST): string {
    const short = this.withoutLargeStrings(text);
    return short.length <= charactersAtMost ? short : this.add(short).reference;
  }
}
