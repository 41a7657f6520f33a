import { z } from "zod";
import { exportOf, type NamedExport } from "./http.ts";

/** `store.index` of `langgraph.json`. */
export interface StoreIndexConfig {
  /** As written: `./embeddings.ts:embed` or `openai:text-embedding-3-small`. */
  embed: string;
  /** Undefined for a provider's model. */
  module: NamedExport | undefined;
  dims: number;
  /** Paths of texts in LangGraph's notation; `$` is the whole value. */
  fields: string[];
}

/** The limit of a pgvector column. */
const DIMS_AT_MOST = 16_000;
const FILE = /[/\\]|^\.|\.[cm]?[jt]sx?$/;

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

/** @param folder base of relative paths */
export const storeIndexOf = (
  index: z.output<typeof storeIndexSchema>,
  folder: string,
): StoreIndexConfig | undefined => {
  if (index === undefined || index === null) return undefined;
  const { embed, dims, fields } = index;
  const isFile = FILE.test(embed.slice(0, embed.lastIndexOf(":")));
  const module = isFile ? exportOf(embed, folder) : undefined;
  return { embed, module, dims, fields: fields ?? ["$"] };
};
