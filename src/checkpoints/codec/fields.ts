export type Fields = Record<string, unknown>;

/** The key of what JSON can't say: `{$type: "date", value: …}`. */
export const TYPE = "$type";

/** Assigning `__proto__` would change the prototype; defining it is data. */
export const setField = (target: Fields, key: string, value: unknown): void => {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else target[key] = value;
};
