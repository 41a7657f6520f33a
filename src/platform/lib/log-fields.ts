/** A line of 8 MB stops a log collector, and a buffer of 8 MB as JSON blocks the event loop for 17 s. */

const TEXT_AT_MOST = 8_000;
const KEY_AT_MOST = 200;
const ITEMS_AT_MOST = 100;
const NESTING_AT_MOST = 6;
/** Characters of all fields of a line together. */
const FIELDS_AT_MOST = 32_000;

export const boundedText = (text: string, atMost = TEXT_AT_MOST): string =>
  text.length <= atMost ? text : `${text.slice(0, atMost)}… (${text.length} characters)`;

export const boundedFields = <Fields>(fields: Fields): Fields => {
  let left = FIELDS_AT_MOST;

  const boundedObject = (value: object, nesting: number): unknown => {
    const entries = Object.entries(value);
    const kept = entries
      .slice(0, ITEMS_AT_MOST)
      .map(([key, item]) => [boundedText(key, KEY_AT_MOST), bounded(item, nesting + 1)] as const);
    return Object.fromEntries(
      kept.length < entries.length ? [...kept, ["…", `(${entries.length} fields)`]] : kept,
    );
  };

  const bounded = (value: unknown, nesting: number): unknown => {
    if (typeof value === "string") {
      const text = boundedText(value, Math.min(TEXT_AT_MOST, Math.max(left, 0)));
      left -= text.length;
      return text;
    }
    if (typeof value !== "object" || value === null) return value;
    left -= 1;
    if (nesting > NESTING_AT_MOST || left <= 0) return "(…)";
    if (Array.isArray(value)) {
      const kept = value.slice(0, ITEMS_AT_MOST).map((item) => bounded(item, nesting + 1));
      return kept.length < value.length ? [...kept, `… (${value.length} items)`] : kept;
    }
    if (ArrayBuffer.isView(value)) return `(${value.byteLength} bytes)`;
    const prototype: unknown = Object.getPrototypeOf(value);
    // The logger's serializers limit the size of instances, such as dates and errors.
    return prototype === Object.prototype || prototype === null ? boundedObject(value, nesting) : value;
  };

  return bounded(fields, 0) as Fields;
};
