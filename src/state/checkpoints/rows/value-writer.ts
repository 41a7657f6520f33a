import type { Encryption } from "../../../platform/database/database.ts";
import { CHARACTERS_AT_MOST, encode, stateTooLarge, treeText, type ListHook } from "../../values/encoding.ts";
import type { Segment } from "../lists/segments.ts";
import type { ListReference, LiveList } from "../lists/stored-list.ts";
import type { ThreadLists } from "../lists/thread-lists.ts";
import { hasLargeStrings, LARGE_STRING_CHARACTERS } from "../../values/large-strings.ts";
import { contentHash } from "./content-hash.ts";
import type { NewContents } from "./new-contents.ts";
import type { NewContent } from "./new-rows.ts";
import { WHOLE_LIST, type StoredValue } from "./stored-value.ts";

/** The stored form is chosen when the statement is sent, because the elements may be in a list by then. */
export interface WrittenValue {
  /** Without its large strings. */
  text: string;
  lists: ListReference[];
  array: readonly unknown[] | undefined;
}

/** A larger value becomes a content, to which later checkpoints refer. */
const INLINE_CHARACTERS_AT_MOST = 2_000;
/** An array with a longer text is stored by element. */
const INLINE_ARRAY_CHARACTERS_AT_MOST = 256;
/** An array inside a value becomes a list only if the thread's lists already have this many of its first elements. */
const KNOWN_ELEMENTS_AT_LEAST = 8;

export class ValueWriter {
  private readonly charactersAtMost: number;

  constructor(
    private readonly threadLists: ThreadLists,
    readonly contents: NewContents,
    charactersAtMost = Infinity,
  ) {
    this.charactersAtMost = Math.min(charactersAtMost, CHARACTERS_AT_MOST);
  }

  /** `before`: the channel's last stored value. */
  storeChannel(channel: string, value: unknown, before: StoredValue | undefined): StoredValue {
    if (Array.isArray(value) && before?.live !== undefined)
      return this.storeList(this.threadLists.plan(value, before.live));
    // LangGraph replaces its own channels at every step, so a list does not pay off.
    if (Array.isArray(value) && !channel.startsWith("__") && !this.isKnownList(value)) {
      let characters = 1;
      const texts = value.map((element) => {
        const text = treeText(encode(element));
        characters += text.length + 1;
        if (characters > this.charactersAtMost) throw stateTooLarge(this.charactersAtMost);
        return text;
      });
      if (characters > INLINE_ARRAY_CHARACTERS_AT_MOST)
        return this.storeList(this.threadLists.plan(value, undefined, texts));
    }
    return this.store(value);
  }

  /** For a task's write. `storeWritten` makes the stored form. */
  prepareWrite(value: unknown): WrittenValue {
    const { text: wholeText, lists } = this.toText(value);
    const isWhole = wholeText.length < LARGE_STRING_CHARACTERS || typeof value === "string";
    const text = isWhole ? wholeText : this.contents.withoutLargeStrings(wholeText);
    const isArray = Array.isArray(value) && lists.length === 0;
    return { text, lists: lists.map((list) => list.reference), array: isArray ? value : undefined };
  }

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
    return { text: undefined, hash: this.contents.add(text), lists: references, live };
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
 * Refers to elements that are now in a list, even if a reducer has added their ids. Adds other large values to
 * `contents`.
 */
export const storeWritten = (
  { text, lists, array }: WrittenValue,
  {
    threadLists,
    exists,
    contents,
    encryption,
  }: {
    threadLists: ThreadLists;
    exists: (segment: Segment) => boolean;
    contents: NewContent[];
    encryption: Encryption;
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
  if (text.length <= INLINE_CHARACTERS_AT_MOST && !hasLargeStrings(text))
    return { text, hash: undefined, lists, live: undefined };
  const hash = contentHash(text, encryption);
  contents.push({ hash, text });
  return { text: undefined, hash, lists, live: undefined };
};

/** Trees with the `id` elsewhere never equal a task's write. */
const textWithoutId = (text: string, element: unknown): string =>
  text.startsWith('{"lc":') || text.startsWith('{"$type":"object"')
    ? text
    : text.replace(`,"id":${JSON.stringify((element as { id?: unknown }).id)}`, "");
