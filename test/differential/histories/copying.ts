import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

/** Also symbols: LangChain tells its classes by them. */
const copyFields = (from: object, to: object): void => {
  for (const key of Reflect.ownKeys(from)) {
    const descriptor = Object.getOwnPropertyDescriptor(from, key);
    if (descriptor === undefined) continue;
    if ("value" in descriptor) descriptor.value = copyOf(descriptor.value);
    Object.defineProperty(to, key, descriptor);
  }
};

/** A deep copy with the same classes. */
export const copy = <Value>(value: Value): Value => copyOf(value) as Value;

const copyOf = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [copyOf(key), copyOf(item)]));
  if (value instanceof Set) return new Set([...value].map(copyOf));
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof Uint8Array) return Uint8Array.from(value);
  if (Array.isArray(value)) return value.map(copyOf);
  const made: object = Object.create(Object.getPrototypeOf(value) as object | null) as object;
  copyFields(value, made);
  return made;
};

/**
 * Lets MemorySaver keep copies in place of JSON. Its own serializer loses dates, big integers and -0, which the server keeps.
 */
export const COPYING: SerializerProtocol = {
  dumpsTyped: (value: unknown) => Promise.resolve(["json", copy(value) as Uint8Array]),
  loadsTyped: (_type: string, stored: unknown) => Promise.resolve(copy(stored)),
};
