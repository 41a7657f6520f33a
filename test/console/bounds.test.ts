import { describe, expect, test } from "vitest";
import { BoundedSchema } from "../../console/src/parts/schema-form/bounded-schema.ts";
import { stepsOf } from "../../console/src/parts/schema-form/patterns.ts";
import { SchemaCheck } from "../../console/src/parts/schema-form/schema-check.ts";
import { refetchEvery } from "../../console/src/server/refetch.ts";
import { ApiError } from "../../console/src/server/api-error.ts";
import { threadName } from "../../console/src/parts/thread-name.ts";
import { partsOf } from "../../console/src/playground/messages/markdown-parts.ts";

/** A graph's output is processed in the reader's tab, which must not freeze. */

const kindsOf = (text: string, isGrowing = false): string[] =>
  partsOf(text, isGrowing).map(({ kind }) => kind);

describe("the parts of a text", () => {
  const ORDINARY = [
    "# A heading",
    "Some **words**, `code` and [a link](https://example.com).\n\n- one\n- two",
    "| a | b |\n| - | - |\n| 1 | 2 |",
    "> a quotation",
  ].join("\n\n");

  test("are formatted if the text is ordinary, however long", () => {
    expect(kindsOf(ORDINARY)).toEqual(["formatted"]);
    expect(new Set(kindsOf(`${ORDINARY}\n\n`.repeat(300)))).toEqual(new Set(["formatted"]));
    expect(kindsOf(`|a|b|c|\n|-|-|-|\n${"|some words|**two**|3|\n".repeat(100)}`)).toEqual(["formatted"]);
  });

  test("are blocks of code, which are not parsed, whatever they contain", () => {
    const parts = partsOf("Look:\n```js\n[[[[ **\n\n~~~\n```\nand\n~~~~\n```\n~~~\n~~~~", false);
    expect(parts).toEqual([
      { kind: "formatted", text: "Look:" },
      { kind: "code", text: "[[[[ **\n\n~~~", language: "js" },
      { kind: "formatted", text: "and" },
      { kind: "code", text: "```\n~~~" },
    ]);
    expect(partsOf("```\nnot yet ended", true)).toEqual([
      { kind: "code", text: "not yet ended", isOpen: true },
    ]);
    expect(kindsOf(`\`\`\`\n${"[*_".repeat(10_000)}\n\`\`\``)).toEqual(["code"]);
  });

  test.for([
    "*a_ ",
    "[",
    "[a](",
    "_*_*",
    "~~a",
    "- a\n",
    "> ",
    "1. ",
    "a|\n-|\n",
    "`a",
    "[^a]: b\n",
    "a\n\n*[_",
  ])("stay plain text after a beginning if 8,000 characters of %j would block the page", (bad) => {
    const text = bad.repeat(8_000 / bad.length);
    const parts = partsOf(text, false);
    const marks = parts.map(({ kind, text: part }) =>
      kind === "formatted" ? part.replaceAll(/[\w ]/g, "").length : 0,
    );
    expect(Math.hypot(...marks)).toBeLessThan(2_001);
    expect(parts.map((part) => part.text).join("\n")).toBe(text);
  });

  test("are one part if a link or a footnote is defined in another place", () => {
    expect(kindsOf("A [link][1].\n\n```\ncode\n```\n\n[1]: https://example.com")).toEqual(["formatted"]);
  });

  test("of a growing text stay the same, except the last one", () => {
    const text = `${ORDINARY}\n\n`.repeat(20);
    const whole = partsOf(text, true);
    for (const length of [200, 1_000, 2_000]) {
      const parts = partsOf(text.slice(0, length), true);
      expect(parts.slice(0, -1)).toEqual(whole.slice(0, parts.length - 1));
    }
  });
});

describe("a pattern", () => {
  const MANY = 50_000_000;

  test.for([
    "^[a-z]+$",
    "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
    "^(foo|bar)$",
    "^(?=.*\\d)(?=.*[a-z]).{8,}$",
    "^https?://",
    "^[^@]+@[^@]+\\.[^@]+$",
  ])("is checked against texts: %s", (pattern) => expect(stepsOf(pattern)(100)).toBeLessThan(MANY));

  test.for([
    "^(a+)+$",
    "^(a|a)*$",
    "^(.*)\\1$",
    "a*a*a*a*a*b",
    `^${"a?".repeat(30)}${"a".repeat(30)}$`,
    "^(a?){30}a{30}$",
    "(",
    "[",
  ])("is not checked, since it may never end: %s", (pattern) =>
    expect(stepsOf(pattern)(100)).toBeGreaterThan(MANY),
  );
});

describe("a value is validated in bounded time", () => {
  const errorsOf = (schema: Record<string, unknown>, value: unknown): string[] =>
    new SchemaCheck(schema).errorsOf(value).map(({ message }) => message);
  const SLOW = `${"a".repeat(60)}!`;

  test("only against patterns that end", () => {
    expect(errorsOf({ properties: { a: { pattern: "^[a-z]+$" } } }, { a: "A" })).toEqual([
      "String does not match pattern",
    ]);
    expect(errorsOf({ properties: { a: { pattern: "^(a+)+$" } } }, { a: SLOW })).toEqual([]);
    expect(errorsOf({ format: "url" }, `http://${SLOW}`)).toEqual([]);
    const map = { patternProperties: { "^(a+)+$": { type: "string" } }, additionalProperties: false };
    expect(errorsOf(map, { [SLOW]: 1 })).toEqual([]);
    const quick = { patternProperties: { "^a": { type: "string" } }, additionalProperties: false };
    expect(errorsOf(quick, { b: 1 })).toEqual(["is not allowed here"]);
  });

  test("in steps counted over the whole value, not for each text, key and list", () => {
    const many = Array.from({ length: 1_000 }, () => ({ a: "ab".repeat(100) }));
    const keys = Object.fromEntries(Array.from({ length: 5_000 }, (_, place) => [`key${place}`, place]));
    const items = Array.from({ length: 1_000 }, (_, place) => place);
    /** How many of the validator's checks find the property. */
    const timesThere = (name: string, schema: Record<string, unknown>, value: unknown): number => {
      const bounded = new BoundedSchema(schema);
      const place = bounded.schema as Record<string, unknown>;
      bounded.begin(value);
      return many.filter(() => [place["type"], place[name]][1] !== undefined).length;
    };
    const ofKeys = { patternProperties: { "^.*a.*b$": true }, additionalProperties: false };
    for (const [name, schema, value] of [
      ["pattern", { pattern: "^.*a.*b.*c$" }, many],
      ["patternProperties", ofKeys, keys],
      ["additionalProperties", ofKeys, keys],
      ["uniqueItems", { uniqueItems: true }, [items, items]],
    ] as const) {
      const times = timesThere(name, schema, value);
      expect(times, name).toBeGreaterThan(0);
      expect(times, name).toBeLessThan(many.length);
    }
  });

  test("against a schema that expands endlessly", () => {
    const doubled = Object.fromEntries(
      Array.from({ length: 40 }, (_, level) => [
        `s${level}`,
        { allOf: [{ $ref: `#/$defs/s${level + 1}` }, { $ref: `#/$defs/s${level + 1}` }] },
      ]),
    );
    const schema = { $ref: "#/$defs/s0", $defs: { ...doubled, s40: { type: "string" } } };
    expect(errorsOf(schema, 1)).toEqual([]);
  });

  test("against properties with the names of counted ones", () => {
    const schema = {
      type: "object",
      properties: { type: { type: "string" }, pattern: { type: "integer" }, format: { const: "url" } },
      required: ["type"],
    };
    expect(errorsOf(schema, { type: "a", pattern: 1, format: "url" })).toEqual([]);
    expect(errorsOf(schema, { pattern: "b" }).sort()).toEqual(["is required", "must be a whole number"]);
    const named = JSON.parse('{"properties": {"__proto__": {"type": "string"}}}') as Record<string, unknown>;
    expect(
      Object.hasOwn((new BoundedSchema(named).schema as { properties: object }).properties, "__proto__"),
    ).toBe(true);
  });

  test("with no more errors than a person reads", () => {
    const [message = ""] = errorsOf(
      { enum: Array.from({ length: 10_000 }, (_, index) => `choice ${index}`) },
      "x",
    );
    expect(message.length).toBeLessThan(310);
  });
});

describe("the name of a thread", () => {
  test("is read from the beginning of its message, so a list with megabytes is drawn at once", () => {
    const thread = {
      thread_id: "1",
      metadata: null,
      extracted: { first: `  Dear\n ${"a b  ".repeat(400_000)}` },
    };
    const started = performance.now();
    for (let time = 0; time < 1_000; time += 1) expect(threadName(thread)).toMatch(/^Dear a b a b/);
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});

describe("a part of a page that is read every two minutes", () => {
  const after = (error: Error | null): number | false => refetchEvery(120_000)({ state: { error } });

  test("is read soon after a server was gone, and no sooner than before if it refuses so many requests", () => {
    expect(after(new TypeError("Failed to fetch"))).toBe(10_000);
    expect(after(new ApiError(429, "Too many requests."))).toBe(120_000);
    expect(after(new ApiError(404, "Not found."))).toBe(false);
    expect(after(null)).toBe(120_000);
  });
});
