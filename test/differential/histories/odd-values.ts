/** Values that JSON or a careless copy would lose. A function makes each anew, because graphs change them in place. */
export const ODD_VALUES: Readonly<Record<string, () => unknown>> = {
  "empty object": () => ({}),
  "empty array": () => [],
  null: () => null,
  "empty text": () => "",
  zero: () => 0,
  false: () => false,
  "minus zero": () => -0,
  "not a number": () => Number.NaN,
  fraction: () => 0.1 + 0.2,
  "undefined inside": () => ({ gone: undefined, list: [undefined, 1], kept: null }),
  nested: () => ({ deep: { deeper: [[], {}, null, [[]], [{}]] } }),
  date: () => ({ at: new Date(86_400_000) }),
  map: () =>
    new Map<string, unknown>([
      ["a", 1],
      ["b", new Set([2])],
    ]),
  set: () => new Set(["x", {}, []]),
  bytes: () => new Uint8Array([0, 255, 7]),
  big: () => ({ big: 12_345_678_901_234_567_890n }),
  "odd keys": () =>
    JSON.parse('{"__proto__": {"a": 1}, "constructor": "c", "": 1, "a.b": 2, "10": 3, "2": 4}'),
  "type key": () => ({ $type: "date", lc: 1, type: "constructor", id: ["not", "a", "class"], kwargs: {} }),
  separators: () => "a\u2028b\u2029c\u0000d\u0002e",
  "half surrogate": () => ({ text: "a\ud83d", "\udc00": 1 }),
  "long text": () => "é".repeat(2_500),
  "large text": () => ({ text: `${"large ".repeat(6_000)}` }),
  "large text twice": () => ["L".repeat(40_000), { again: "L".repeat(40_000) }],
  "long list of empties": () => Array.from({ length: 90 }, (_, index) => [[], {}, null, ""][index % 4]),
};

/** Those that a request can carry. The server refuses the key `__proto__` (http/bodies.ts). */
export const ODD_JSON = [
  "empty object",
  "empty array",
  "null",
  "empty text",
  "zero",
  "false",
  "fraction",
  "nested",
  "type key",
  "separators",
  "half surrogate",
  "long text",
  "large text",
  "large text twice",
  "long list of empties",
] as const;

const NAME = "$odd";
const COUNT = "$items";

/** Stands for an odd value in a history, so that a printed history stays short. */
export const oddByName = (name: (typeof ODD_JSON)[number]): unknown => ({ [NAME]: name });

/** Stands for a list of so many items, one in 50 with this value. */
export const itemsByCount = (count: number, name: (typeof ODD_JSON)[number]): unknown => ({
  [COUNT]: count,
  [NAME]: name,
});

const itemsOf = (count: unknown, name: unknown): unknown[] =>
  Array.from({ length: Number(count) }, (_, number) => ({
    number,
    deep: { value: number % 50 === 1 ? ODD_VALUES[String(name)]?.() : null, list: [] },
  }));

/** Puts the values in the places of their names. */
export const withOddValues = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withOddValues);
  if (typeof value !== "object" || value === null) return value;
  if (COUNT in value) return itemsOf(value[COUNT], NAME in value ? value[NAME] : undefined);
  if (NAME in value) return ODD_VALUES[String(value[NAME])]?.();
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withOddValues(item)]));
};

/** Tells types apart that look the same in JSON. Graphs write it into their state. */
export const describeValue = (value: unknown, depth = 3): string => {
  if (Object.is(value, -0)) return "-0";
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "string") return value.length > 40 ? `text of ${value.length}` : JSON.stringify(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (depth === 0) return "…";
  const inside = (items: Iterable<unknown>): string =>
    [...items].map((item) => describeValue(item, depth - 1)).join(",");
  if (Array.isArray(value)) return `[${inside(value)}]`;
  if (value instanceof Map) return `Map(${inside(value)})`;
  if (value instanceof Set) return `Set(${inside(value)})`;
  if (value instanceof Date) return `Date(${value.getTime()})`;
  if (value instanceof Uint8Array) return `Uint8Array(${value.join(",")})`;
  return `{${inside(Object.entries(value))}}`;
};
