import { resolve } from "node:path";
import { z } from "zod";

/** How items of the store are found by meaning: `store.index` of `langgraph.json`. */
export interface StoreIndexConfig {
  /** What makes the vectors, as the file says it: `./embeddings.ts:embed` or `openai:text-embedding-3-small`. */
  embed: string;
  /** The export that this names; undefined where it names a provider's model. */
  module: { file: string; exportName: string } | undefined;
  /** Numbers in a vector. */
  dims: number;
  /** Where in a value the texts are, in LangGraph's notation; `$` is the whole value. */
  fields: string[];
}

/** As many as a column of pgvector can have. */
const DIMS_AT_MOST = 16_000;
/** What a provider's name is not: with a folder, or with the ending of a module. */
const FILE = /[/\\]|^\.|\.[cm]?[jt]sx?$/;

/** `store.index` as it stands in the file. */
export const storeIndexSchema = z
  .object({
    embed: z.string().regex(/^.+:.+$/s, {
      error:
        "must name an export like './embeddings.ts:embed' or a model like 'openai:text-embedding-3-small'",
    }),
    dims: z.int().min(1).max(DIMS_AT_MOST),
    fields: z.array(z.string().min(1)).min(1).nullish(),
  })
  .nullish();

/** @param folder that paths are relative to */
export const storeIndexOf = (
  index: z.output<typeof storeIndexSchema>,
  folder: string,
): StoreIndexConfig | undefined => {
  if (index === undefined || index === null) return undefined;
  const { embed, dims, fields } = index;
  const colon = embed.lastIndexOf(":");
  const path = embed.slice(0, colon);
  const module = FILE.test(path)
    ? { file: resolve(folder, path), exportName: embed.slice(colon + 1) }
    : undefined;
  return { embed, module, dims, fields: fields ?? ["$"] };
};
