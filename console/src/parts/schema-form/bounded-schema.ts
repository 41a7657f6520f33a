import { isQuick } from "./patterns.ts";

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Schemas that are looked at for one value; some unfold without end. */
const VISITS_AT_MOST = 20_000;
/** A list is compared with itself, each item with each. */
const ITEMS_COMPARED_AT_MOST = 1_000;
/** Its expression takes time that doubles with each character. */
const SLOW_FORMAT = "url";

/** The longest of a value's texts and keys, in characters, and the longest of its lists. */
const sizeOf = (value: unknown): { characters: number; items: number } => {
  let characters = 0;
  let items = 0;
  JSON.stringify(value, (key, part: unknown) => {
    characters = Math.max(characters, key.length, typeof part === "string" ? part.length : 0);
    if (Array.isArray(part)) items = Math.max(items, part.length);
    return part;
  });
  return { characters, items };
};

/**
 * A copy of a schema of somebody else that can be held against a value in bounded time, for a validator that knows no bounds: it reads `type`
 * wherever it comes to a schema, so that is where its steps are counted; and what would take too long for the value at hand, which
 * patterns may, is not there for it.
 */
export class BoundedSchema {
  readonly schema: unknown;
  #visits = 0;
  #size = { characters: 0, items: 0 };

  constructor(schema: unknown) {
    this.schema = this.#copyOf(schema);
  }

  /** Before each value that is held against it. */
  begin(value: unknown): void {
    this.#visits = 0;
    this.#size = sizeOf(value);
  }

  #visit(): void {
    this.#visits += 1;
    if (this.#visits > VISITS_AT_MOST) throw new Error("The schema unfolds without end.");
  }

  #isQuick(pattern: unknown): boolean {
    return typeof pattern === "string" && isQuick(pattern, this.#size.characters);
  }

  #copyOf(given: unknown): unknown {
    if (Array.isArray(given)) return given.map((part: unknown) => this.#copyOf(part));
    if (!isObject(given)) return given;
    const copy: Record<string, unknown> = {};
    for (const [key, part] of Object.entries(given)) define(copy, key, this.#copyOf(part));
    this.#guard(copy);
    return copy;
  }

  /** Also what only looks like a schema, such as its `properties`: there these names lead to objects, which stay as they are. */
  #guard(copy: Record<string, unknown>): void {
    const has = (name: string): boolean => Object.hasOwn(copy, name);
    const { type } = own(copy, "type");
    Object.defineProperty(copy, "type", {
      enumerable: has("type"),
      get: () => {
        this.#visit();
        return type;
      },
    });
    const onlyWhere = (name: string, isFine: () => boolean): void => {
      const { [name]: value } = own(copy, name);
      if (value === undefined) return;
      Object.defineProperty(copy, name, { enumerable: true, get: () => (isFine() ? value : undefined) });
    };
    const { pattern, patternProperties, format, uniqueItems } = own(
      copy,
      "pattern",
      "patternProperties",
      "format",
      "uniqueItems",
    );
    if (typeof pattern === "string") onlyWhere("pattern", () => this.#isQuick(pattern));
    if (isObject(patternProperties)) {
      const areQuick = (): boolean => Object.keys(patternProperties).every((each) => this.#isQuick(each));
      // Which other properties there are is not known without them.
      for (const name of ["patternProperties", "additionalProperties", "unevaluatedProperties"])
        onlyWhere(name, areQuick);
    }
    if (format === SLOW_FORMAT) onlyWhere("format", () => false);
    if (uniqueItems === true) onlyWhere("uniqueItems", () => this.#size.items <= ITEMS_COMPARED_AT_MOST);
  }
}

/** Also of the name `__proto__`. */
const define = (object: object, key: string, value: unknown): void => {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
};

const own = (object: Record<string, unknown>, ...names: string[]): Record<string, unknown> =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(object, name)).map((name) => [name, object[name]]));
