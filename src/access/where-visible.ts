import { sql, type RawBuilder, type SqlBool } from "kysely";
import type { Visibility, Within } from "./visibility.ts";

const EVERYTHING = sql<SqlBool>`true`;

/** A visibility as a Kysely `where` condition. Raw statements use `Visibility.condition`. */
export const whereVisible = (
  visibility: Visibility,
  metadata: string,
  within?: Within,
): RawBuilder<SqlBool> => {
  const pieces = visibility.pieces(metadata, within);
  if (pieces === undefined) return EVERYTHING;
  return sql<SqlBool>(pieces.texts as unknown as TemplateStringsArray, ...pieces.values);
};
