import { expect, test } from "vitest";
import { hashOf, idOf, isKeyText, makeKey } from "../../../src/access/keys/key-text.ts";

test("a key is recognised by its prefix and its checksum, and no two keys are equal", () => {
  const keys = Array.from({ length: 1_000 }, makeKey);
  expect(new Set(keys).size).toBe(1_000);
  for (const key of keys) {
    expect(key).toMatch(/^tl_[0-9A-Za-z]{49}$/);
    expect(isKeyText(key)).toBe(true);
  }
});

test("a text that only resembles a key is not one", () => {
  const key = makeKey();
  const other = key.at(10) === "a" ? "b" : "a";
  for (const text of [
    "",
    "ci",
    key.slice(0, -1),
    `${key}0`,
    ` ${key}`,
    key.replace("tl_", "sk_"),
    `${key.slice(0, 10)}${other}${key.slice(11)}`,
  ]) {
    expect([text, isKeyText(text)]).toEqual([text, false]);
  }
});

test("a key's id is the start of its hash, which does not reveal the key", () => {
  const key = makeKey();
  expect(idOf(hashOf(key))).toMatch(/^[0-9a-f]{12}$/);
  expect(key).not.toContain(idOf(hashOf(key)));
});
