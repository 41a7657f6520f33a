import { stepsOf } from "./patterns.ts";
import { isObject } from "../is-object.ts";

/** Some schemas are recursive without end. */
const VISITS_AT_MOST = 20_000;
/** About half a second. */
const STEPS_AT_MOST = 50_000_000;
/** The validator's time for this format doubles with each character. */
const SLOW_FORMAT = "url";

interface Size {
  characters: number;
  items: number;
  keys: number;
}
const NO_SIZE: Size = { characters: 0, items: 0, keys: 0 };

const sizeOf = (value: unknown): Size => {
  const size = { ...NO_SIZE };
  JSON.stringify(value, (key, part: unknown) => {
    size.characters = Math.max(size.characters, key.length, typeof part === "string" ? part.length : 0);
    if (Array.isArray(part)) size.items = Math.max(size.items, part.length);
    else if (isObject(part)) size.keys = Math.max(size.keys, Object.keys(part).length);
    return part;
  });
  return size;
};

/**
 * Bounds the time of a validator that has no bounds. The validator reads `type` of each subschema, so a
 * getter there counts steps and hides keywords that would take too long for the value.
 */
export class BoundedSchema {
  readonly schema: unknown;
  #visits = 0;
  #steps = 0;
  #size = NO_SIZE;

  constructor(schema: unknown) {
    this.schema = this.#copyOf(schema);
  }

  /** Call before each value. */
  begin(value: unknown): void {
    this.#visits = 0;
    this.#steps = 0;
    this.#size = sizeOf(value);
  }

  #visit(): void {
    this.#visits += 1;
    if (this.#visits > VISITS_AT_MOST) throw new Error("The schema contains itself without end.");
  }

  #mayTake(steps: number): boolean {
    if (this.#steps + steps > STEPS_AT_MOST) return false;
    this.#steps += steps;
    return true;
  }

  #copyOf(given: unknown): unknown {
    if (Array.isArray(given)) return given.map((part: unknown) => this.#copyOf(part));
    if (!isObject(given)) return given;
    const copy: Record<string, unknown> = {};
    for (const [key, part] of Object.entries(given)) define(copy, key, this.#copyOf(part));
    this.#guard(copy);
    return copy;
  }

  /** Also guards objects that are no schemas, such as `properties`, whose values stay unchanged. */
  #guard(copy: Record<string, unknown>): void {
    const { type, pattern, patternProperties, format, uniqueItems } = own(
      copy,
      ...["type", "pattern", "patternProperties", "format", "uniqueItems"],
    );
    const guarded: { stepsOf(size: Size): number; isThere: boolean }[] = [];
    Object.defineProperty(copy, "type", {
      enumerable: Object.hasOwn(copy, "type"),
      get: () => {
        this.#visit();
        for (const part of guarded) part.isThere = this.#mayTake(part.stepsOf(this.#size));
        return type;
      },
    });
    const guard = (names: readonly string[], steps: (size: Size) => number): void => {
      const part = { stepsOf: steps, isThere: true };
      guarded.push(part);
      for (const [name, value] of Object.entries(own(copy, ...names)))
        Object.defineProperty(copy, name, {
          enumerable: true,
          get: () => (part.isThere ? value : undefined),
        });
    };
    if (typeof pattern === "string") {
      const steps = stepsOf(pattern);
      guard(["pattern"], ({ characters }) => steps(characters));
    }
    if (isObject(patternProperties)) {
      const each = Object.keys(patternProperties).map(stepsOf);
      // These depend on the pattern properties.
      guard(
        ["patternProperties", "additionalProperties", "unevaluatedProperties"],
        ({ characters, keys }) => Math.max(keys, 1) * each.reduce((sum, steps) => sum + steps(characters), 0),
      );
    }
    if (format === SLOW_FORMAT) guard(["format"], () => Infinity);
    if (uniqueItems === true) guard(["uniqueItems"], ({ items }) => items ** 2);
  }
}

/** Assignment would not define a key `__proto__`. */
const define = (object: object, key: string, value: unknown): void => {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
};

const own = (object: Record<string, unknown>, ...names: string[]): Record<string, unknown> =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(object, name)).map((name) => [name, object[name]]));
