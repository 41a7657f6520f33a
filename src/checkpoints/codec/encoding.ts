/**
 * From any value of a graph's state to a tree that `JSON.stringify` writes as it is, and that `revive` turns back.
 *
 * Plain values stay what they are and are the very same objects in the tree (nothing is copied that needs no
 * change). What JSON can't say is an object with the key `$type`, and so is a message (messages.ts). Other classes of
 * LangChain have the constructor form
 * that LangChain itself writes (`{lc: 1, type: "constructor", id, kwargs}`). A plain object that has one of these
 * keys itself is wrapped, so that text from outside is never taken for an instruction to build something.
 */

import { Ancestry, CIRCULAR, withoutCycles } from "../../lib/cycles.ts";
import { isMessage } from "../../lib/wire-json.ts";
import { setField, TYPE, type Fields } from "./fields.ts";
import { encodeMessage, type MessageFields } from "./messages.ts";

/** Stands in the tree for a list that is stored by element: `{$type: "list", list: index}`. */
export interface ListMarker {
  [TYPE]: "list";
  list: number;
}

/** Asked for every array: the index of the list that stands for it, or undefined to write it where it is. */
export type ListHook = (array: readonly unknown[]) => number | undefined;

/** More than any real state; JSON.stringify itself gives up at some 5,000 levels. */
const NESTING_AT_MOST = 1_000;
const NESTING_UNSUSPICIOUS = 64;

/** The tree of a value. Throws a TypeError for one that is nested deeper than 1,000 levels. */
export const encode = (value: unknown, listHook?: ListHook): unknown =>
  withoutCycles((ancestry) => new Encoder(listHook, ancestry).encode(value));

/** The tree's text: one line of JSON. */
export const treeText = (tree: unknown): string => JSON.stringify(tree);

class Encoder {
  private depth = 0;

  constructor(
    private readonly listHook: ListHook | undefined,
    private readonly fromTheTop: Ancestry | undefined,
  ) {}

  /** For values that are nested suspiciously deep. */
  private readonly fromSomeDepth = new Ancestry();

  encode(value: unknown): unknown {
    switch (typeof value) {
      case "string":
      case "boolean":
        return value;
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0)
          ? value
          : { [TYPE]: "number", value: numberName(value) };
      case "bigint":
        return { [TYPE]: "bigint", value: value.toString() };
      case "object":
        return value === null ? null : this.encodeObject(value);
      default: // undefined; functions and symbols have no stored form
        return { [TYPE]: "undefined" };
    }
  }

  private encodeObject(value: object): unknown {
    this.depth += 1;
    const ancestry = this.fromTheTop ?? (this.depth > NESTING_UNSUSPICIOUS ? this.fromSomeDepth : undefined);
    if (this.depth > NESTING_AT_MOST) {
      throw new TypeError(`The state can't be stored: it is nested deeper than ${NESTING_AT_MOST} levels.`);
    }
    if (ancestry !== undefined && !ancestry.enter(value)) {
      this.depth -= 1;
      return CIRCULAR;
    }
    const tree = Array.isArray(value) ? this.encodeArray(value) : this.encodeFields(value as Fields);
    ancestry?.leave(value);
    this.depth -= 1;
    return tree;
  }

  private encodeArray(array: unknown[]): unknown {
    const list = this.listHook?.(array);
    if (list !== undefined) return { [TYPE]: "list", list } satisfies ListMarker;
    let changed: unknown[] | undefined;
    for (let index = 0; index < array.length; index++) {
      const tree = this.encode(array[index]);
      if (tree !== array[index]) (changed ??= array.slice())[index] = tree;
    }
    return changed ?? array;
  }

  private encodeFields(value: Fields): unknown {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) {
      const tree = this.encodeInstance(value);
      if (tree !== value) return tree;
    } else if (typeof value.toJSON === "function") {
      return this.encode((value.toJSON as () => unknown)());
    }
    const plain = this.encodePlain(value);
    const reserved = Object.hasOwn(value, TYPE) || Object.hasOwn(value, "lc");
    return reserved ? { [TYPE]: "object", value: plain } : plain;
  }

  private encodePlain(value: Fields): Fields {
    let changed: Fields | undefined;
    for (const key of Object.keys(value)) {
      const before = value[key];
      if (typeof before === "function" || typeof before === "symbol") {
        changed ??= { ...value };
        delete changed[key];
        continue;
      }
      const after = this.encode(before);
      if (after !== before) setField((changed ??= { ...value }), key, after);
    }
    return changed ?? value;
  }

  /** The tree of an instance of a class; the same reference if its own fields are all there is to it. */
  private encodeInstance(value: Fields): unknown {
    if (isMessage(value))
      return encodeMessage(value as unknown as MessageFields, (part) => this.encode(part));
    if (value instanceof Date) {
      return { [TYPE]: "date", value: Number.isNaN(value.getTime()) ? null : value.toISOString() };
    }
    if (value instanceof Map) return { [TYPE]: "map", value: this.encode([...value]) };
    if (value instanceof Set) return { [TYPE]: "set", value: this.encode([...(value as Set<unknown>)]) };
    if (ArrayBuffer.isView(value)) {
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
      return {
        [TYPE]: "bytes",
        of: Buffer.isBuffer(value) ? "Buffer" : value.constructor.name,
        value: bytes,
      };
    }
    if (value instanceof ArrayBuffer) {
      return { [TYPE]: "bytes", of: "ArrayBuffer", value: Buffer.from(value).toString("base64") };
    }
    if (value instanceof RegExp) return { [TYPE]: "regexp", source: value.source, flags: value.flags };
    if (value instanceof URL) return { [TYPE]: "url", value: value.href };
    if (value instanceof Error) return this.encodeError(value);
    switch (value.lg_name) {
      case "Send":
        return {
          [TYPE]: "send",
          node: value.node,
          args: this.encode(value.args),
          ...(value.timeout === undefined ? {} : { timeout: this.encode(value.timeout) }),
        };
      case "Command": {
        const { graph, update, resume, goto } = value;
        return { [TYPE]: "command", value: this.encodePlain({ graph, update, resume, goto }) };
      }
      case "Overwrite":
        return { [TYPE]: "overwrite", value: this.encode(value.__overwrite__) };
      case "DeltaSnapshot":
        return { [TYPE]: "delta_snapshot", value: this.encode(value.value) };
    }
    if (value.lc_serializable === true && typeof value.toJSON === "function") {
      return this.encodeSerializable((value.toJSON as () => unknown)());
    }
    if (typeof value.toJSON === "function") return this.encode((value.toJSON as () => unknown)());
    return value;
  }

  /** What LangChain's own toJSON wrote: nested instances are not yet written, all else is. */
  private encodeSerializable(tree: unknown): unknown {
    if (typeof tree !== "object" || tree === null) return tree;
    if (Array.isArray(tree)) return tree.map((item) => this.encodeSerializable(item));
    if (typeof (tree as Fields).toJSON === "function") return this.encodeObject(tree);
    const copy: Fields = {};
    for (const [key, value] of Object.entries(tree)) setField(copy, key, this.encodeSerializable(value));
    return copy;
  }

  /** Without the stack: it would name paths of the machine to whoever reads the state. */
  private encodeError(error: Error): unknown {
    const fields = Object.keys(error).filter((key) => key !== "name" && key !== "message" && key !== "stack");
    return {
      [TYPE]: "error",
      name: error.name,
      message: error.message,
      ...(error.cause === undefined ? {} : { cause: this.encode(error.cause) }),
      ...(fields.length === 0 ? {} : { fields: this.encodePlain(pick(error as unknown as Fields, fields)) }),
    };
  }
}

const numberName = (value: number): string => (Object.is(value, -0) ? "-0" : String(value));

const pick = (value: Fields, keys: string[]): Fields =>
  Object.fromEntries(keys.map((key) => [key, value[key]]));
