/** How a column is sealed anew, by what stands in it. */

import type { Cipher } from "../encryption/cipher.ts";
import {
  openKnownJson,
  openUndamagedJson,
  sealConfig,
  sealEach,
  sealJson,
  sealMetadata,
} from "../encryption/json.ts";
import type { JsonObject } from "../lib/json.ts";
import { sealKwargs } from "../queue/kwargs.ts";

/** Texts of a row's columns by their names; null: nothing is stored. */
export type SealedRow = Readonly<Record<string, string | null>>;

export interface SealedTable {
  name: string;
  /** The columns of the primary key, in its order, with their types. */
  key: readonly (readonly [column: string, type: string])[];
  /** What may be sealed, with the types of the columns. */
  columns: readonly (readonly [column: string, type: "text" | "json" | "jsonb" | "bytea"])[];
  /** SQL of what else `reseal` has to know, as text, by its name; `t` is the row. */
  also?: Readonly<Record<string, string>>;
  /** How each column is encrypted with the newest key, whatever key encrypted it before. Text that needs no encryption stays. */
  reseals(row: SealedRow): Readonly<Record<string, Reseal>>;
}

export type Reseal = (text: string, cipher: Cipher) => string;

export const textOf = (row: SealedRow, column: string): string => row[column] ?? "";
const objectIn = (text: string, cipher: Cipher): JsonObject =>
  JSON.parse(openUndamagedJson(cipher, text)) as JsonObject;

/** They stand open, so what looks sealed and is not may be what somebody wrote. */
export const metadata: Reseal = (text, cipher) =>
  JSON.stringify(sealMetadata(cipher, JSON.parse(openKnownJson(cipher, text)) as JsonObject));
export const config =
  (among?: string): Reseal =>
  (text, cipher) =>
    JSON.stringify(sealConfig(cipher, objectIn(text, cipher), among));
export const context =
  (among?: string): Reseal =>
  (text, cipher) =>
    JSON.stringify(sealEach(cipher, objectIn(text, cipher), among));
export const kwargs: Reseal = (text, cipher) => sealKwargs(cipher, openUndamagedJson(cipher, text));
export const whole: Reseal = (text, cipher) => sealJson(cipher, openUndamagedJson(cipher, text));
/** The database asks for `{}`. */
export const interrupts: Reseal = (text, cipher) => (text === "{}" ? text : whole(text, cipher));
export const inPlace =
  (place: string): Reseal =>
  (text, cipher) =>
    cipher.seal(cipher.open(text, place), place);
