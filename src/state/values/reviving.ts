/** Reviving never returns or changes a tree, because trees are cached and revived again. */

import { PLAIN_CLASSES, type ValueClasses } from "./classes.ts";
import { setProperty, type Properties } from "../../platform/lib/properties.ts";
import { TYPE } from "./type-key.ts";
import { isSerialized } from "./types/langchain.ts";
import { reviveConstructorForm } from "./types/message.ts";
import { typeNamed } from "./types/table.ts";
import type { PartReviver } from "./value-type.ts";

/**
 * `revive` leaves the stored form of LangChain classes other than messages, which load asynchronously. `settle`
 * replaces the form.
 */
export type Unfinished = Array<() => Promise<void>>;

/**
 * Builds only the types of types/table.ts and the classes that LangChain's `load` allows; other records stay plain
 * data. `classes`: the classes of the receiving graph; default: for values that are only sent.
 */
export const revive = (
  tree: unknown,
  unfinished?: Unfinished,
  classes: ValueClasses = PLAIN_CLASSES,
): unknown => new Reviver(unfinished, classes).revive(tree);

export const settle = async (unfinished: Unfinished): Promise<void> => {
  if (unfinished.length > 0) await Promise.all(unfinished.map((finish) => finish()));
};

class Reviver implements PartReviver {
  constructor(
    private readonly unfinished: Unfinished | undefined,
    readonly classes: ValueClasses,
  ) {}

  revive(tree: unknown): unknown {
    if (typeof tree !== "object" || tree === null) return tree;
    if (Array.isArray(tree)) return this.reviveArray(tree);
    const properties = tree as Properties;
    // Only LangChain's own forms have this key, since encoding wraps plain objects with it.
    if (properties.lc !== undefined) {
      return reviveConstructorForm(properties, this) ?? structuredClone(properties);
    }
    const name = properties[TYPE];
    if (name === undefined) return this.reviveProperties(properties);
    const type = typeNamed(name);
    if (type?.revive !== undefined) return type.revive(properties, this);
    return this.reviveProperties(name === "object" ? (properties.value as Properties) : properties);
  }

  private reviveArray(tree: readonly unknown[]): unknown[] {
    const array = new Array<unknown>(tree.length);
    for (let index = 0; index < tree.length; index++) {
      array[index] = this.revive(tree[index]);
      if (this.unfinished !== undefined) this.loadLater(tree[index], array, index);
    }
    return array;
  }

  reviveProperties(tree: Properties, without?: string): Properties {
    const properties: Properties = {};
    for (const key in tree) {
      if (key === without) continue;
      const part = tree[key];
      if (key === "__proto__") setProperty(properties, key, this.revive(part));
      else properties[key] = typeof part === "object" && part !== null ? this.revive(part) : part;
      if (this.unfinished !== undefined) this.loadLater(part, properties, key);
    }
    return properties;
  }

  fill<Target>(target: Target, tree: unknown, fill: (items: never) => void): Target {
    const { unfinished } = this;
    const before: Unfinished = [];
    const items = new Reviver(unfinished && before, this.classes).revive(tree) as never;
    if (before.length === 0) fill(items);
    else unfinished?.push(async () => (await settle(before), fill(items)));
    return target;
  }

  loadLater(tree: unknown, holder: object, key: string | number): void {
    if (this.unfinished === undefined || !isSerialized(tree)) return;
    this.unfinished.push(async () => {
      try {
        setProperty(holder as Properties, String(key), await this.classes.load(JSON.stringify(tree)));
      } catch {
        // LangChain doesn't allow or know the class: the value stays a record.
      }
    });
  }
}
