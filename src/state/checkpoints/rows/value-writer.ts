/** From live values to stored ones. */

import type { Cipher } from "../../../platform/encryption/cipher.ts";
import { CHARACTERS_AT_MOST, encode, stateTooLarge, treeText, type ListHook } from "../../values/encoding.ts";
import type { Segment } from "../lists/segments.ts";
import type { ListReference, LiveList } from "../lists/stored-list.ts";
import type { ThreadLists } from "../lists/thread-lists.ts";
import { contentHash } from "./content-hash.ts";
import type { NewContent } from "./new-rows.ts";
import { WHOLE_LIST, type StoredValue } from "./stored-value.ts";

/** What a task wrote. How it is stored is decided when it is sent: by then its elements may stand in a list. */
export interface WrittenValue {
  text: string;
  lists: ListReference[];
  /** The value itself, if it is an array. */
  array: readonly unknown[] | undefined;
}

/** A larger value is kept apart: the next checkpoints then refer to it. */
const INLINE_CHARACTERS_AT_MOST = 2_000;
/** A longer array is stored by element. */
const ARRAY_CHARACTERS_AT_MOST = 256;
/** An array inside a value becomes a list of its own only if it starts with so many elements that are known. */
const KNOWN_ELEMENTS_AT_LEAST = 8;

/** Stores the values of one writer. */
export class ValueWriter {
  private readonly storedHashes = new Set<string>();
  private contents: NewContent[] = [];
  private readonly charactersAtMost: number;

  constructor(
    private readonly threadLists: ThreadLists,
    private readonly cipher: Cipher | undefined,
    charactersAtMost = Infinity,
  ) {
    this.charactersAtMost = Math.min(charactersAtMost, CHARACTERS_AT_MOST);
  }

  takeNewContents(): NewContent[] {
    const taken = this.contents;
    this.contents = [];
    return taken;
  }

  /** Takes note of what was read, so that it isn't sent again. */
  rememberContent(hash: string): void {
    this.storedHashes.add(hash);
  }

  /** Stores the value of a channel, given what is stored of the same channel before. */
  storeChannel(channel: string, value: unknown, before: StoredValue | undefined): StoredValue {
    if (Array.isArray(value) && before?.live !== undefined)
      return this.storeList(this.threadLists.plan(value, before.live));
    // Channels of LangGraph's own are replaced at every step: no list is worth it.
    if (Array.isArray(value) && !channel.startsWith("__") && !this.isKnownList(value)) {
      let characters = 1;
      const texts = value.map((element) => {
        const text = treeText(encode(element));
        characters += text.length + 1;
        if (characters > this.charactersAtMost) throw stateTooLarge(this.charactersAtMost);
        return text;
      });
      if (characters > ARRAY_CHARACTERS_AT_MOST)
        return this.storeList(this.threadLists.plan(value, undefined, texts));
    }
    return this.store(value);
  }

  /** Takes what a task wrote. */
  write(value: unknown): WrittenValue {
    const { text, lists } = this.toText(value);
    const isArray = Array.isArray(value) && lists.length === 0;
    return { text, lists: lists.map((list) => list.reference), array: isArray ? value : undefined };
  }

  /** A value's text. Lists in it whose elements are known are referred to. */
  private toText(value: unknown): { text: string; lists: LiveList[] } {
    const lists: LiveList[] = [];
    const hook: ListHook = (array) => {
      if (!this.isKnownList(array)) return undefined;
      return lists.push(this.threadLists.plan(array, undefined)) - 1;
    };
    const text = treeText(encode(value, hook, this.charactersAtMost));
    if (text?.length > this.charactersAtMost) throw stateTooLarge(this.charactersAtMost);
    return { text, lists };
  }

  private store(value: unknown): StoredValue {
    const { text, lists } = this.toText(value);
    const live = Array.isArray(value) && text === WHOLE_LIST ? lists[0] : undefined;
    const references = lists.map((list) => list.reference);
    if (text.length <= INLINE_CHARACTERS_AT_MOST) return { text, hash: undefined, lists: references, live };
    const hash = contentHash(text, this.cipher);
    if (!this.storedHashes.has(hash)) {
      this.storedHashes.add(hash);
      this.contents.push({ hash, text });
    }
    return { text: undefined, hash, lists: references, live };
  }

  private storeList(live: LiveList): StoredValue {
    return { text: WHOLE_LIST, hash: undefined, lists: [live.reference], live };
  }

  private isKnownList(array: readonly unknown[]): boolean {
    if (array.length < KNOWN_ELEMENTS_AT_LEAST) return false;
    for (let index = 0; index < KNOWN_ELEMENTS_AT_LEAST; index++)
      if (!this.threadLists.knows(array[index])) return false;
    return true;
  }
}

/**
 * How the value that a task wrote is stored. If its elements have become elements of a list since, the value refers to
 * them: a list holds the very message that a node gave, except for an id that a reducer may have added. Any other value
 * is stored as it is, or added to `contents` if it is large.
 */
export const storeWritten = (
  { text, lists, array }: WrittenValue,
  {
    threadLists,
    exists,
    contents,
    cipher,
  }: {
    threadLists: ThreadLists;
    exists: (segment: Segment) => boolean;
    contents: NewContent[];
    cipher: Cipher | undefined;
  },
): StoredValue => {
  const found = array === undefined ? undefined : threadLists.findNew(array);
  if (found !== undefined && array !== undefined && exists(found.segment)) {
    const reference = { segments: [found.segment] };
    const stored = { text: WHOLE_LIST, hash: undefined, lists: [reference], live: undefined };
    if (`[${found.texts.join(",")}]` === text) return stored;
    const withoutIds = found.texts.map((element, index) => textWithoutId(element, array[index]));
    if (`[${withoutIds.join(",")}]` === text) return { ...stored, withoutIds: true };
  }
  if (text.length <= INLINE_CHARACTERS_AT_MOST) return { text, hash: undefined, lists, live: undefined };
  const hash = contentHash(text, cipher);
  contents.push({ hash, text });
  return { text: undefined, hash, lists, live: undefined };
};

/** The same text for a tree whose `id` does not stand at its top: nothing then resembles what was written. */
const textWithoutId = (text: string, element: unknown): string =>
  text.startsWith('{"lc":') || text.startsWith('{"$type":"object"')
    ? text
    : text.replace(`,"id":${JSON.stringify((element as { id?: unknown }).id)}`, "");
