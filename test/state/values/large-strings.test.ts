import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  containsLargeString,
  LARGE_STRING_CHARACTERS,
  referencesIn,
  takeOutLargeStrings,
  withoutReferences,
} from "../../../src/state/values/large-strings.ts";

const whole = (stored: string, literals: ReadonlyMap<string, string>): string =>
  withoutReferences(stored, (hash) => literals.get(hash)!);
/** Names each literal by its place. */
const takenOut = (text: string): { stored: string; literals: Map<string, string> } => {
  const literals = new Map<string, string>();
  const stored = takeOutLargeStrings(text, (literal) => {
    const hash = `h${literals.size}`;
    literals.set(hash, literal);
    return hash;
  });
  return { stored, literals };
};
const large = (character = "x"): string => character.repeat(LARGE_STRING_CHARACTERS);

describe("a JSON text without its large strings", () => {
  it("is whole again with them, whatever it holds", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.constantFrom('"', "\\", '\\"', "\u0001", "\u0001h0,3\u0001", "é\ud800", "$&"),
    );
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        text,
        text.map((part) => part.padEnd(LARGE_STRING_CHARACTERS, part === "" ? "\\" : part)),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(text, tie("value"), { maxKeys: 4 }),
      ),
    })).value;
    fc.assert(
      fc.property(value, (given) => {
        const text = JSON.stringify(given);
        const { stored, literals } = takenOut(text);
        expect(whole(stored, literals)).toBe(text);
        for (const literal of literals.values()) expect(typeof JSON.parse(literal)).toBe("string");
      }),
      { numRuns: 200 },
    );
  });

  it("is short, and names each", () => {
    const { stored, literals } = takenOut(JSON.stringify([large(), { [large("é")]: "small" }]));
    expect(stored.length).toBeLessThan(100);
    expect(literals.size).toBe(2);
    expect(referencesIn(stored)).toEqual(["h0", "h1"]);
  });

  it("keeps a string whose quotes are escaped in one piece", () => {
    const value = [`${'"'.repeat(LARGE_STRING_CHARACTERS)}\\`, "small"];
    const { stored, literals } = takenOut(JSON.stringify(value));
    expect([...literals.values()].map((literal) => JSON.parse(literal) as unknown)).toEqual([value[0]]);
    expect(whole(stored, literals)).toBe(JSON.stringify(value));
  });

  it("is the text itself if nobody keeps the string", () => {
    const text = JSON.stringify([large()]);
    expect(takeOutLargeStrings(text, () => undefined)).toBe(text);
    expect(containsLargeString(text)).toBe(true);
    expect(containsLargeString(JSON.stringify(Array(5_000).fill("small string")))).toBe(false);
  });
});
