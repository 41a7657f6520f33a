import { describe, expect, test } from "vitest";
import {
  isEncrypted,
  openCipher,
  openText,
  parseKeys,
  type Cipher,
  type Places,
} from "../../../src/platform/encryption/cipher.ts";
import { ENCRYPTED_COLUMNS } from "../../../src/platform/encryption/columns.ts";
import { Encryption } from "../../../src/platform/encryption/encryption.ts";
import {
  assertSearchable,
  decryptJson,
  encryptConfig,
  encryptJson,
  encryptMetadata,
  encryptValue,
} from "../../../src/platform/encryption/json.ts";
import type { JsonObject } from "../../../src/platform/lib/json.ts";
import { cipherOf } from "../../helpers/encryption.ts";

const OLD = "an old key of a test, 32 bytes .";
const NEW = "a key of a test, of 32 bytes ...";
const PLACE = "elements 1 2";
const ROW = "json runs config 1";
const RUN = { run_id: "1" };
const CHECKPOINT = { checkpoint_ns: "", checkpoint_id: "1" };
const TEXTS = ["", "said", '{"a":"ü€😀"}', "line\nline", "a\u0000b", "x".repeat(100_000)];

describe("an encrypted text", () => {
  const cipher = cipherOf(NEW);

  test.each(TEXTS)("decrypts in its place, and nowhere else", (text) => {
    const encrypted = cipher.encrypt(text, PLACE);
    expect(cipher.decrypt(encrypted, PLACE)).toBe(text);
    expect(cipher.decrypt(encrypted, "elements 1 3", PLACE)).toBe(text);
    expect(encrypted).toMatch(/^enc1:[\w-]{6}:[A-Za-z0-9+/]+=*$/);
    expect(() => cipher.decrypt(encrypted, "elements 1 3")).toThrow(/was changed or moved/);
  });

  test("differs each time, unless it is to be deterministic", () => {
    expect(cipher.encrypt("said", PLACE)).not.toBe(cipher.encrypt("said", PLACE));
    const alike = cipher.encryptAlike("said", PLACE);
    expect(cipher.encryptAlike("said", PLACE)).toBe(alike);
    expect(cipher.encryptAlike("said", "elements 1 3")).not.toBe(alike);
    expect(cipher.encryptAlike("meant", PLACE)).not.toBe(alike);
    expect(cipher.decrypt(alike, PLACE)).toBe("said");
  });

  test("can't be changed in any byte, nor cut", () => {
    const encrypted = cipher.encrypt("said", PLACE);
    const start = encrypted.lastIndexOf(":") + 1;
    const bytes = Buffer.from(encrypted.slice(start), "base64");
    for (let index = 0; index < bytes.length; index++) {
      const changed = Buffer.from(bytes);
      changed[index]! ^= 1;
      const text = encrypted.slice(0, start) + changed.toString("base64");
      expect(() => cipher.decrypt(text, PLACE)).toThrow("was changed");
    }
    for (let length = 0; length < bytes.length; length += 7) {
      const cut = encrypted.slice(0, start) + bytes.subarray(0, length).toString("base64");
      expect(() => cipher.decrypt(cut, PLACE)).toThrow("was changed");
    }
  });

  test("requires its key, and an error names the key's id without its value", () => {
    const encrypted = cipherOf(OLD).encrypt("said", PLACE);
    const messageOf = (open: () => unknown): string => {
      try {
        return String(open());
      } catch (error) {
        return (error as Error).message;
      }
    };
    for (const text of [
      messageOf(() => cipher.decrypt(encrypted, PLACE)),
      messageOf(() => openText(undefined, encrypted, PLACE)),
    ]) {
      expect(text).toContain(`with the key '${cipherOf(OLD).keyId}', which this server does not have`);
      expect(text).not.toContain(OLD);
    }
    expect(openText(undefined, "[1]", PLACE)).toBe("[1]");
  });

  test("of an older key decrypts beside a newer one, which encrypts", () => {
    const both = openCipher({ keys: [NEW, OLD].map(base64), metadataKeys: [] }) as Cipher;
    expect(both.decrypt(cipherOf(OLD).encrypt("said", PLACE), PLACE)).toBe("said");
    expect(cipherOf(NEW).decrypt(both.encrypt("said", PLACE), PLACE)).toBe("said");
  });

  test("reveals nothing about the text of a digest without the key", () => {
    expect(cipher.digest("said")).toMatch(/^[0-9a-f]{32}$/);
    expect(cipher.digest("said")).toBe(cipherOf(NEW).digest("said"));
    expect(cipher.digest("said")).not.toBe(cipherOf(OLD).digest("said"));
  });
});

describe("keys", () => {
  test.each([
    [
      "of 16, 24 or 32 bytes are taken as they stand, as on the hosted server",
      "k".repeat(24),
      ["k".repeat(24)],
    ],
    ["may hold commas", "k,k,k,k,k,k,k,k,", ["k,k,k,k,k,k,k,k,"]],
    ["are separated by commas", `${"a".repeat(16)}, ${"b".repeat(32)}`, ["a".repeat(16), "b".repeat(32)]],
    ["may be hexadecimal", "61".repeat(32), ["a".repeat(32)]],
    ["may be base64", Buffer.from("a".repeat(32)).toString("base64"), ["a".repeat(32)]],
    ["of another length are none", "short", undefined],
    ["are none if one of several is none", `${"a".repeat(16)},short`, undefined],
  ])("%s", (_, text, keys) => {
    expect(parseKeys(text)?.map(String)).toEqual(keys);
  });
});

describe("encrypted values in JSON", () => {
  const cipher = cipherOf(NEW, ["secret"]);
  const parsed = (text: string, places: Places = [ROW]): unknown =>
    JSON.parse(decryptJson(cipher, text, places));

  test("are decrypted at any depth, and may be of any type", () => {
    for (const value of ["said", 'a "quote"\\', 1, null, [1, { deep: true }], { a: "ü" }]) {
      expect(parsed(encryptJson(cipher, JSON.stringify(value), ROW))).toEqual(value);
      const around = JSON.stringify({ a: [encryptValue(cipher, value, ROW)], b: "open" });
      expect(parsed(around)).toEqual({ a: [value], b: "open" });
    }
  });

  test("keep the keys of a configuration, and are equal for one thread", () => {
    const config: JsonObject = {
      tags: ["said"],
      configurable: { model: "said", constructor: 1, ["__proto__"]: "said" },
    };
    const encrypted = encryptConfig(cipher, config, { place: ROW, alike: true });
    expect(JSON.stringify(encrypted)).not.toContain("said");
    expect(Object.keys(encrypted.configurable as object)).toEqual(["model", "constructor", "__proto__"]);
    expect(encryptConfig(cipher, config, { place: ROW, alike: true })).toEqual(encrypted);
    expect(decryptJson(cipher, JSON.stringify(encrypted), [ROW])).toBe(JSON.stringify(config));
  });

  test("are those of the chosen keys, in metadata", () => {
    const metadata = { secret: { a: 1 }, open: ["said", { secret: "hidden" }] };
    const encrypted = JSON.stringify(encryptMetadata(cipher, metadata, ROW));
    expect(encrypted).toContain('"open":["said",{"secret":"enc1:');
    expect(parsed(encrypted)).toEqual(metadata);
    expect(() => assertSearchable(cipher, { open: [{ secret: 1 }] })).toThrow("'secret' are encrypted");
    expect(() => assertSearchable(cipher, { open: "said" })).not.toThrow();
  });

  test("are not confused with a user's imitation", () => {
    const other = cipherOf(OLD);
    const planted = {
      a: encryptValue(other, "said", ROW),
      'b"enc1:': `"${encryptValue(other, "x", ROW)}`,
      c: "enc1:",
    };
    expect(parsed(JSON.stringify(planted))).toEqual(planted);
    // From a backup of this server.
    for (const text of [encryptValue(cipher, "said", ROW), `enc1:${cipher.keyId}:AAAA`, "enc1:"]) {
      const own = { a: text, deep: [{ b: text }, text], [text]: 1 };
      const stored = JSON.stringify(encryptMetadata(cipher, own, ROW));
      expect(parsed(stored)).toEqual(own);
      // As PostgreSQL writes it.
      expect(parsed(stored.replaceAll('":', '" : '))).toEqual(own);
      const kwargs = { input: "said", interrupt_before: [text], checkpoint: { checkpoint_map: { a: text } } };
      expect(
        parsed(
          ENCRYPTED_COLUMNS.runs.kwargs.encrypted(cipher, JSON.stringify(kwargs), RUN),
          ENCRYPTED_COLUMNS.runs.kwargs.places(RUN),
        ),
      ).toEqual(kwargs);
      const config = { [text]: text, configurable: { [text]: text } };
      expect(parsed(JSON.stringify(encryptConfig(cipher, config, { place: ROW })))).toEqual(config);
      const ofCheckpoint = { searchable: text, copied: { secret: 1, a: text } };
      const encrypted = new Encryption(cipher).encryptedMetadata(
        ofCheckpoint,
        CHECKPOINT,
        (key) => key === "searchable",
      );
      expect(
        parsed(JSON.stringify(encrypted), ENCRYPTED_COLUMNS.checkpoints.metadata.places(CHECKPOINT)),
      ).toEqual(ofCheckpoint);
      expect(() => assertSearchable(cipher, { a: [text] })).toThrow("begin with 'enc1:'");
    }
    const quoted = { text: `he wrote "${encryptValue(cipher, "said", ROW)}" there` };
    expect(parsed(JSON.stringify(quoted))).toEqual(quoted);
    expect(isEncrypted('"enc1:')).toBe(false);
  });

  test("that are damaged stay unchanged, are logged once, and do not affect the values beside them", () => {
    const reported: string[] = [];
    const newCipher = cipherOf(NEW);
    newCipher.onDamaged(({ message }) => reported.push(message));
    const damaged = `enc1:${newCipher.keyId}:AAAA`;
    const stored = {
      a: damaged,
      b: [newCipher.encrypt("1", "elsewhere")],
      c: encryptValue(newCipher, "said", ROW),
    };
    expect(JSON.parse(decryptJson(newCipher, JSON.stringify(stored), [ROW]))).toEqual({
      ...stored,
      c: "said",
    });
    expect(reported).toEqual([expect.stringContaining("was changed or moved")]);
  });
});

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

test("several keys are separated by commas, with or without spaces; a key with a comma must be the only one", () => {
  const [one, other] = ["a key of a test, of 32 bytes ...", "0123456789abcdef"];
  const hex = "ab".repeat(32);
  const texts = (keys: Buffer[] | undefined) => keys?.map((key) => key.toString());
  expect(texts(parseKeys(`${other}, ${"x".repeat(24)} ,${other}`))).toEqual([other, "x".repeat(24), other]);
  expect(parseKeys(`${hex},${other}`)).toEqual([Buffer.from(hex, "hex"), Buffer.from(other)]);
  expect(texts(parseKeys(one))).toEqual([one]);
  expect(parseKeys(`${one},${other}`)).toBeUndefined();
});
