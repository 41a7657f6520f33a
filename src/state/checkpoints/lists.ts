/**
 * A long list is stored as a tree of contents. A leaf holds the texts of some elements that were new at the same time,
 * a node above holds references to leaves or nodes, and the list's own text refers to the topmost ones. An append
 * stores one leaf, and a list that was changed elsewhere stores again only the leaves and nodes around the change.
 */

import { equalsTree } from "../values/comparing.ts";
import { encode, stateTooLarge, treeText } from "../values/encoding.ts";
import type { NewContents } from "./contents.ts";

interface Node {
  readonly hash: string;
  readonly reference: string;
}

export interface Leaf extends Node {
  readonly elements: readonly unknown[];
  /** Aligned with `elements`. Shares nothing with them, because user code may change them in place. */
  readonly trees: readonly unknown[];
}

/** A stored version of a list. */
export interface StoredList {
  readonly elements: readonly unknown[];
  readonly leaves: readonly Leaf[];
  readonly text: string;
}

/** A leaf of small elements holds more of them. */
const LEAF_ELEMENTS = 64;
const LEAF_CHARACTERS = 8_192;
const LEAF_CHARACTERS_AT_MOST = 65_536;
const NODES_AT_LEAST = 4;
const NODES_AT_MOST = 64;
/**
 * In a list that keeps its objects, only so many of the last elements are compared with what is stored: 0.3 µs for a
 * message. An older element that user code changes in place keeps its stored value.
 */
export const COMPARED_ELEMENTS = 64;

export class ThreadLists {
  /** By the first element, if it is an object. */
  private readonly leaves = new WeakMap<object, Leaf>();
  /** By the last of the nodes that it holds. */
  private readonly nodes = new WeakMap<Node, { held: readonly Node[]; node: Node }>();

  constructor(
    private readonly contents: NewContents,
    private readonly charactersAtMost: number,
  ) {}

  /** For a list that was read. */
  remember(leaves: readonly Leaf[]): void {
    for (const leaf of leaves) {
      const [first] = leaf.elements;
      if (typeof first === "object" && first !== null) this.leaves.set(first, leaf);
    }
  }

  /** Whether the list begins as a list that the thread has. */
  knows(array: readonly unknown[]): boolean {
    const leaf = this.leafFrom(array[0]);
    return leaf !== undefined && leaf.elements.every((element, index) => Object.is(element, array[index]));
  }

  /** `before`: the last stored version. `texts`: of the elements, if they are known. */
  store(array: readonly unknown[], before?: StoredList, texts?: readonly string[]): StoredList {
    const comparedFrom = Math.min(array.length, before?.elements.length ?? Infinity) - COMPARED_ELEMENTS;
    const isAt = (leaf: Leaf | undefined, index: number, from = comparedFrom): boolean => {
      if (leaf === undefined || index + leaf.elements.length > array.length) return false;
      for (const [offset, element] of leaf.elements.entries()) {
        const place = index + offset;
        if (!Object.is(array[place], element)) return false;
        if (place >= from && !equalsTree(element, leaf.trees[offset])) return false;
      }
      return true;
    };
    const leaves: Leaf[] = [];
    let next = 0;
    let unstored = 0;
    for (let index = 0; index < array.length;) {
      let leaf = before?.leaves[next];
      if (isAt(leaf, index)) next += 1;
      else {
        leaf = this.leafFrom(array[index]);
        const place = leaf === undefined ? -1 : (before?.leaves.indexOf(leaf) ?? -1);
        // A leaf of another version may hold what an element was before user code changed it.
        if (!isAt(leaf, index, place < 0 ? 0 : comparedFrom)) {
          index += 1;
          continue;
        }
        if (place >= 0) next = place + 1;
      }
      this.storeLeaves(leaves, array, unstored, index, texts);
      leaves.push(leaf!);
      index += leaf!.elements.length;
      unstored = index;
    }
    this.storeLeaves(leaves, array, unstored, array.length, texts);
    const isSame =
      leaves.length === before?.leaves.length && leaves.every((leaf, index) => leaf === before.leaves[index]);
    if (isSame) return before;
    const text = `[${this.topmost(leaves)
      .map(({ reference }) => reference)
      .join(",")}]`;
    return { elements: array.slice(), leaves, text };
  }

  private leafFrom(first: unknown): Leaf | undefined {
    return typeof first === "object" && first !== null ? this.leaves.get(first) : undefined;
  }

  /** Adds leaves for the elements [from, to). */
  private storeLeaves(
    leaves: Leaf[],
    array: readonly unknown[],
    from: number,
    to: number,
    texts: readonly string[] | undefined,
  ): void {
    const added: Leaf[] = [];
    let all = 0;
    for (let start = from; start < to;) {
      const [stored, trees]: [string[], unknown[]] = [[], []];
      let characters = 0;
      let end = start;
      const isFull = (): boolean =>
        characters >= LEAF_CHARACTERS_AT_MOST ||
        (end - start >= LEAF_ELEMENTS && characters >= LEAF_CHARACTERS);
      while (end < to && !isFull()) {
        const text = texts?.[end] ?? treeText(encode(array[end]));
        all += text.length;
        if (all > this.charactersAtMost) throw stateTooLarge(this.charactersAtMost);
        trees.push(JSON.parse(text));
        const short = this.contents.withoutLargeStrings(text);
        characters += short.length;
        stored.push(short);
        end += 1;
      }
      added.push({ ...this.contents.add(stored.join(",")), elements: array.slice(start, end), trees });
      start = end;
    }
    this.remember(added);
    leaves.push(...added);
  }

  /**
   * Groups end where a hash says so. So an insertion or a removal changes the nodes around it, and not all that follow.
   */
  private topmost(nodes: readonly Node[]): readonly Node[] {
    const above: Node[] = [];
    let group: Node[] = [];
    for (const node of nodes) {
      group.push(node);
      const { length } = group;
      if (length < NODES_AT_LEAST || !(length === NODES_AT_MOST || endsGroup(node))) continue;
      above.push(this.nodeAbove(group));
      group = [];
    }
    return above.length === 0 ? nodes : [...this.topmost(above), ...group];
  }

  private nodeAbove(group: readonly Node[]): Node {
    const last = group.at(-1)!;
    const known = this.nodes.get(last);
    if (known?.held.length === group.length && known.held.every((node, index) => node === group[index]))
      return known.node;
    const node = this.contents.add(group.map(({ reference }) => reference).join(","));
    this.nodes.set(last, { held: group, node });
    return node;
  }
}

/** For one of eight nodes. */
const endsGroup = ({ hash }: Node): boolean => hash.endsWith("0") || hash.endsWith("8");
