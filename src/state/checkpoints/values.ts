import { randomUUID } from "node:crypto";
import { CHARACTERS_AT_MOST, encode, stateTooLarge, treeText, type ListHook } from "../values/encoding.ts";
import { INLINE_CHARACTERS_AT_MOST, type NewContents } from "./contents.ts";
import { ThreadLists, type StoredList } from "./lists.ts";

export interface StoredValue {
  /** As a row holds it. */
  text: string;
  /** Only for a list: the next version is compared with it. */
  list?: StoredList | undefined;
}

/** A longer array is first written as one text, to see whether it is too large. */
const CHECKED_ELEMENTS = 10_000;
/** A longer list of references becomes a content, whose row has only the hashes. */
const LIST_CHARACTERS_AT_MOST = 128;
/** Stands for a list in the text of a value. A caller can't know it, so no value can hold it. */
const LIST_TOKEN = randomUUID();
const LIST_TOKENS = new RegExp(`"${LIST_TOKEN}(\\d+)"`, "g");

/** Makes the stored texts of the values that a thread's writer is given. */
export class ValueWriter {
  readonly lists: ThreadLists;
  private readonly charactersAtMost: number;

  constructor(
    private readonly contents: NewContents,
    charactersAtMost = Infinity,
  ) {
    this.charactersAtMost = Math.min(charactersAtMost, CHARACTERS_AT_MOST);
    this.lists = new ThreadLists(contents, charactersAtMost);
  }

  /** `before`: the channel's last stored value. */
  store(channel: string, value: unknown, before?: StoredValue): StoredValue {
    if (!Array.isArray(value)) return { text: this.contents.inline(this.textOf(value)) };
    if (before?.list !== undefined || this.lists.knows(value))
      return this.storeList(this.lists.store(value, before?.list));
    // LangGraph replaces its own channels at every step, so a list does not pay off.
    if (channel.startsWith("__")) return { text: this.contents.inline(this.textOf(value)) };
    // The texts of millions of elements would fill the heap before their sum is too large.
    if (value.length > CHECKED_ELEMENTS) this.textOf(value);
    let characters = 1;
    const texts = Array.from(value, (element: unknown) => {
      const text = treeText(encode(element));
      characters += text.length + 1;
      if (characters > this.charactersAtMost) throw stateTooLarge(this.charactersAtMost);
      return text;
    });
    return characters <= INLINE_CHARACTERS_AT_MOST
      ? { text: `[${texts.join(",")}]` }
      : this.storeList(this.lists.store(value, undefined, texts));
  }

  /** A list of the thread inside the value is stored as the list is. */
  private textOf(value: unknown): string {
    const lists: StoredList[] = [];
    const hook: ListHook = (array) =>
      this.lists.knows(array) ? `${LIST_TOKEN}${lists.push(this.lists.store(array)) - 1}` : undefined;
    const text = treeText(encode(value, hook, this.charactersAtMost));
    if (text.length > this.charactersAtMost) throw stateTooLarge(this.charactersAtMost);
    return lists.length === 0
      ? text
      : text.replace(LIST_TOKENS, (_, index: string) => lists[Number(index)]!.text);
  }

  private storeList(list: StoredList): StoredValue {
    return { text: this.contents.inline(list.text, LIST_CHARACTERS_AT_MOST), list };
  }
}
