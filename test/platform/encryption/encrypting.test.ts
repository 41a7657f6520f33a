import { describe, expect, test } from "vitest";
import { isSealed, openText, type Cipher, type Places } from "../../../src/platform/encryption/cipher.ts";
import { CHECKPOINT_JSON, RUN_JSON } from "../../../src/platform/encryption/columns.ts";
import {
  assertSearchable,
  openJson,
  sealConfig,
  sealJson,
  sealMetadata,
  sealValue,
} from "../../../src/platform/encryption/json.ts";
import { parseKeys } from "../../../src/platform/encryption/keys.ts";
import { openCipher } from "../../../src/platform/encryption/setup.ts";
import { sealOwnMetadata } from "../../../src/state/checkpoints/rows/metadata.ts";
import type { JsonObject } from "../../../src/platform/lib/json.ts";
import { cipherOf } from "../../helpers/encryption.ts";

const OLD = "an old key of a test, 32 bytes .";
const NEW = "a key of a test, of 32 bytes ...";
const PLACE = "elements 1 2";
const ROW = "json runs config 1";
const RUN = { run_id: "1" };
const CHECKPOINT = { checkpoint_ns: "", checkpoint_id: "1" };
const TEXTS = ["", "said", '{"a":"ü€😀"}', "line\nline", "a\u0000b", "x".repeat(100_000)];

describe("a sealed text", () => {
  const cipher = cipherOf(NEW);

  test.each(TEXTS)("opens in its place, and nowhere else", (text) => {
    const sealed = cipher.seal(text, PLACE);
    expect(cipher.open(sealed, PLACE)).toBe(text);
    expect(cipher.open(sealed, "elements 1 3", PLACE)).toBe(text);
    expect(sealed).toMatch(/^enc1:[\w-]{6}:[A-Za-z0-9+/]+=*$/);
    expect(() => cipher.open(sealed, "elements 1 3")).toThrow(
      /was changed, or stands where it was not stored/,
    );
  });

  test("is another one each time, unless it is to be alike", () => {
    expect(cipher.seal("said", PLACE)).not.toBe(cipher.seal("said", PLACE));
    const alike = cipher.sealAlike("said", PLACE);
    expect(cipher.sealAlike("said", PLACE)).toBe(alike);
    expect(cipher.sealAlike("said", "elements 1 3")).not.toBe(alike);
    expect(cipher.sealAlike("meant", PLACE)).not.toBe(alike);
    expect(cipher.open(alike, PLACE)).toBe("said");
  });

  test("can't be changed in any of its bytes, nor cut", () => {
    const sealed = cipher.seal("said", PLACE);
    const start = sealed.lastIndexOf(":") + 1;
    const bytes = Buffer.from(sealed.slice(start), "base64");
    for (let index = 0; index < bytes.length; index++) {
      const changed = Buffer.from(bytes);
      changed[index]! ^= 1;
      const text = sealed.slice(0, start) + changed.toString("base64");
      expect(() => cipher.open(text, PLACE)).toThrow("was changed");
    }
    for (let length = 0; length < bytes.length; length += 7) {
      const cut = sealed.slice(0, start) + bytes.subarray(0, length).toString("base64");
      expect(() => cipher.open(cut, PLACE)).toThrow("was changed");
    }
  });

  test("needs its key, and an error says which without saying any", () => {
    const sealed = cipherOf(OLD).seal("said", PLACE);
    const told = (open: () => unknown): string => {
      try {
        return String(open());
      } catch (error) {
        return (error as Error).message;
      }
    };
    for (const text of [
      told(() => cipher.open(sealed, PLACE)),
      told(() => openText(undefined, sealed, PLACE)),
    ]) {
      expect(text).toContain(`with the key '${cipherOf(OLD).keyId}', which this server was not given`);
      expect(text).not.toContain(OLD);
    }
    expect(openText(undefined, "[1]", PLACE)).toBe("[1]");
  });

  test("of an older key opens beside a newer one, which seals", () => {
    const both = openCipher({ keys: [NEW, OLD].map(base64), metadataKeys: [] }) as Cipher;
    expect(both.open(cipherOf(OLD).seal("said", PLACE), PLACE)).toBe("said");
    expect(cipherOf(NEW).open(both.seal("said", PLACE), PLACE)).toBe("said");
  });

  test("says nothing of what it is the digest of, without the key", () => {
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

describe("sealed values in JSON", () => {
  const cipher = cipherOf(NEW, ["secret"]);
  const parsed = (text: string, places: Places = [ROW]): unknown =>
    JSON.parse(openJson(cipher, text, places));

  test("are opened wherever they stand, and may be of any type", () => {
    for (const value of ["said", 'a "quote"\\', 1, null, [1, { deep: true }], { a: "ü" }]) {
      expect(parsed(sealJson(cipher, JSON.stringify(value), ROW))).toEqual(value);
      const around = JSON.stringify({ a: [sealValue(cipher, value, ROW)], b: "open" });
      expect(parsed(around)).toEqual({ a: [value], b: "open" });
    }
  });

  test("keep the keys of a configuration, and are alike for one thread", () => {
    const config: JsonObject = {
      tags: ["said"],
      configurable: { model: "said", constructor: 1, ["__proto__"]: "said" },
    };
    const sealed = sealConfig(cipher, config, { place: ROW, alike: true });
    expect(JSON.stringify(sealed)).not.toContain("said");
    expect(Object.keys(sealed.configurable as object)).toEqual(["model", "constructor", "__proto__"]);
    expect(sealConfig(cipher, config, { place: ROW, alike: true })).toEqual(sealed);
    expect(openJson(cipher, JSON.stringify(sealed), [ROW])).toBe(JSON.stringify(config));
  });

  test("are those of the chosen keys, in metadata", () => {
    const metadata = { secret: { a: 1 }, open: ["said", { secret: "hidden" }] };
    const sealed = JSON.stringify(sealMetadata(cipher, metadata, ROW));
    expect(sealed).toContain('"open":["said",{"secret":"enc1:');
    expect(parsed(sealed)).toEqual(metadata);
    expect(() => assertSearchable(cipher, { open: [{ secret: 1 }] })).toThrow("'secret' are encrypted");
    expect(() => assertSearchable(cipher, { open: "said" })).not.toThrow();
  });

  test("are not what somebody wrote who would like them to be", () => {
    const other = cipherOf(OLD);
    const planted = {
      a: sealValue(other, "said", ROW),
      'b"enc1:': `"${sealValue(other, "x", ROW)}`,
      c: "enc1:",
    };
    expect(parsed(JSON.stringify(planted))).toEqual(planted);
    // Out of a backup of this very server.
    for (const text of [sealValue(cipher, "said", ROW), `enc1:${cipher.keyId}:AAAA`, "enc1:"]) {
      const own = { a: text, deep: [{ b: text }, text], [text]: 1 };
      const stored = JSON.stringify(sealMetadata(cipher, own, ROW));
      expect(parsed(stored)).toEqual(own);
      // As PostgreSQL writes it.
      expect(parsed(stored.replaceAll('":', '" : '))).toEqual(own);
      const kwargs = { input: "said", interrupt_before: [text], checkpoint: { checkpoint_map: { a: text } } };
      expect(
        parsed(RUN_JSON.kwargs.sealed(cipher, JSON.stringify(kwargs), RUN), RUN_JSON.kwargs.places(RUN)),
      ).toEqual(kwargs);
      const config = { [text]: text, configurable: { [text]: text } };
      expect(parsed(JSON.stringify(sealConfig(cipher, config, { place: ROW })))).toEqual(config);
      const ofCheckpoint = { searchable: text, copied: { secret: 1, a: text } };
      const sealed = sealOwnMetadata(cipher, ofCheckpoint, new Set(["searchable"]), CHECKPOINT);
      expect(parsed(JSON.stringify(sealed), CHECKPOINT_JSON.metadata.places(CHECKPOINT))).toEqual(
        ofCheckpoint,
      );
      expect(() => assertSearchable(cipher, { a: [text] })).toThrow("begin with 'enc1:'");
    }
    const quoted = { text: `he wrote "${sealValue(cipher, "said", ROW)}" there` };
    expect(parsed(JSON.stringify(quoted))).toEqual(quoted);
    expect(isSealed('"enc1:')).toBe(false);
  });

  test("that are damaged stay as they are, are told of once, and cost what stands beside them nothing", () => {
    const told: string[] = [];
    const telling = cipherOf(NEW);
    telling.onDamaged(({ message }) => told.push(message));
    const damaged = `enc1:${telling.keyId}:AAAA`;
    const stored = { a: damaged, b: [telling.seal("1", "elsewhere")], c: sealValue(telling, "said", ROW) };
    expect(JSON.parse(openJson(telling, JSON.stringify(stored), [ROW]))).toEqual({ ...stored, c: "said" });
    expect(told).toEqual([expect.stringContaining("was changed, or stands where it was not stored")]);
  });
});

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

test("several keys are separated by commas, with or without spaces; a key that holds a comma stands alone", () => {
  const [one, other] = ["a key of a test, of 32 bytes ...", "0123456789abcdef"];
  const hex = "ab".repeat(32);
  const texts = (keys: Buffer[] | undefined) => keys?.map((key) => key.toString());
  expect(texts(parseKeys(`${other}, ${"x".repeat(24)} ,${other}`))).toEqual([other, "x".repeat(24), other]);
  expect(parseKeys(`${hex},${other}`)).toEqual([Buffer.from(hex, "hex"), Buffer.from(other)]);
  expect(texts(parseKeys(one))).toEqual([one]);
  expect(parseKeys(`${one},${other}`)).toBeUndefined();
});
