import { expect, test } from "vitest";
import type { Caller } from "../../../src/access/caller.ts";
import { createCipher, encryptionKey } from "../../../src/platform/encryption/cipher.ts";
import { Encryption } from "../../../src/platform/encryption/encryption.ts";
import { countedAs, isUser } from "../../../src/engine/queue/counted-as.ts";

const OFF = new Encryption(undefined);
const user = (identity: string): Caller => ({ kind: "user", identity, permissions: [], user: {} });
const key = (id: string): Caller => ({ kind: "key", id, scopes: ["run"] });

test("all runs of a caller are counted under one text, and those of another caller under another, whatever their names", () => {
  const texts = [user("ann"), user("bob"), key("ann"), user("key:ann")].map((one) => countedAs(OFF, one));
  expect(new Set(texts).size).toBe(texts.length);
  expect(countedAs(OFF, user("ann"))).toBe(texts[0]);
  expect(texts.map((text) => isUser(text!))).toEqual([true, true, false, true]);
});

test("a caller without a name is not counted", () => {
  expect(countedAs(OFF, { kind: "anonymous" })).toBeNull();
  expect(countedAs(OFF, { kind: "server" })).toBeNull();
});

test("with an encryption key, names can't be guessed from the stored text", () => {
  const [first, second] = [1, 2].map(
    (byte) => new Encryption(createCipher([encryptionKey(Buffer.alloc(32, byte))])),
  );
  const stored = countedAs(first!, user("ann"));
  expect(stored).not.toBe(countedAs(OFF, user("ann")));
  expect(stored).not.toBe(countedAs(second!, user("ann")));
  expect(stored).toBe(countedAs(first!, user("ann")));
  expect(stored).not.toContain("ann");
});
