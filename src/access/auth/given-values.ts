import { isPlainObject } from "./plain-objects.ts";

/** What a handler is given of what somebody asks for. */
export interface GivenValue<Value> {
  value: Value;
  /** To be called once the handler is done: what it has not looked at is what was asked for, the same object. */
  settle(): void;
}

/** All of it: bodies are nested for as many levels as the server takes, see http/json-text.ts. */
const copyOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copyOf(inner)]));
};

const put = (object: object, key: string, value: unknown): void => {
  // It fails for an object that a handler has frozen, which keeps what it has.
  Reflect.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
};

/** The fields of an object; those that are objects are copied when somebody looks at them. */
const lazyCopyOf = (asked: Record<string, unknown>, settling: (() => void)[]): object => {
  const copy = {};
  for (const [key, inner] of Object.entries(asked)) {
    if (typeof inner !== "object" || inner === null) {
      put(copy, key, inner);
      continue;
    }
    let isUntouched = true;
    const become = (value: unknown): void => {
      isUntouched = false;
      put(copy, key, value);
    };
    Object.defineProperty(copy, key, {
      get() {
        const own = copyOf(inner);
        become(own);
        return own;
      },
      set: become,
      enumerable: true,
      configurable: true,
    });
    settling.push(() => isUntouched && become(inner));
  }
  return copy;
};

/**
 * A copy of what was asked for, which a handler may change in place at any depth: what it sets is what is granted, as in the official
 * servers, and what was asked for stays as it is. Who compares the two sees by their identity what may have changed. The input of a run
 * may be of megabytes, and most handlers look at metadata alone: what is two levels deep is copied only if it is looked at (to copy 250,000
 * elements, the most that a body has, took 360 ms, and to compare them as long again).
 */
export const giveValue = <Value extends object>(asked: Value): GivenValue<Value> => {
  const settling: (() => void)[] = [];
  const fields = Object.entries(asked).map(([key, inner]: [string, unknown]) => [
    key,
    isPlainObject(inner) ? lazyCopyOf(inner, settling) : copyOf(inner),
  ]);
  return {
    value: Object.fromEntries(fields) as Value,
    settle() {
      for (const one of settling) one();
    },
  };
};
