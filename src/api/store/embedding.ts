import { createHash } from "node:crypto";
import { invalid, unavailable } from "../../platform/domain/errors.ts";
import { GraphLoadError, messageOf } from "../../graphs/project/langgraph-json.ts";
import type { StoreIndexConfig } from "../../graphs/project/store-embedding.ts";
import { createModuleLoader } from "../../graphs/modules.ts";

export interface EmbeddingModel {
  embedDocuments(texts: string[]): Promise<number[][]>;
  embedQuery(text: string): Promise<number[]>;
}

/** Vectors are in pgvector's text form. Throws `unavailable` if the model fails. */
export interface Embedder {
  documents(texts: readonly string[]): Promise<string[]>;
  query(text: string): Promise<string>;
}

/** Each text needs a vector, which often costs money. */
const TEXTS_PER_ITEM_AT_MOST = 1_000;

/** `[0]`, `[*]`, `{a,b}` or a name. */
const PART = /\[[^\]]*\]|\{[^}]*\}|[^.[\]{}]+/g;

const partOf = (value: unknown, part: string): unknown[] => {
  if (typeof value !== "object" || value === null) return [];
  if (part === "*" || part === "[*]") return Object.values(value);
  if (part.startsWith("{")) {
    return part
      .slice(1, -1)
      .split(",")
      .flatMap((path) => valuesAt(value, path.trim()));
  }
  if (part.startsWith("[")) {
    const place = Number(part.slice(1, -1));
    return Array.isArray(value) && Number.isInteger(place) ? [(value as unknown[]).at(place)] : [];
  }
  return Object.hasOwn(value, part) ? [(value as Record<string, unknown>)[part]] : [];
};

const valuesAt = (value: unknown, path: string): unknown[] =>
  (path.match(PART) ?? [])
    .filter((part, place) => place > 0 || part !== "$")
    .reduce((values, part) => values.flatMap((inner) => partOf(inner, part)), [value]);

const textOf = (value: unknown): string[] => {
  if (value === null || value === undefined) return [];
  return [
    typeof value === "object" ? JSON.stringify(value, null, 2) : String(value as string | number | boolean),
  ];
};

/**
 * Distinct texts at LangGraph's documented paths: `$`, `title`, `meta.title`, `list[0]`, `list[-1]`, `list[*].text`,
 * `*.text`, `{title,text}`. Omits blank texts, which providers refuse; throws `invalid` for too many texts.
 */
export const textsOf = (value: unknown, paths: readonly string[]): string[] => {
  const texts = new Set(
    paths.flatMap((path) => valuesAt(value, path).flatMap(textOf)).filter((text) => text.trim() !== ""),
  );
  if (texts.size > TEXTS_PER_ITEM_AT_MOST) {
    throw invalid(
      `'index' finds ${texts.size} texts in the value of an item; at most ${TEXTS_PER_ITEM_AT_MOST} are possible.`,
    );
  }
  return [...texts];
};

/** As many bytes of SHA-256 as a UUID has. */
const HASH_BYTES = 16;

/** Includes the model, because each model makes other vectors. */
export const hashOf = (embed: string, text: string): string =>
  createHash("sha256")
    .update(`${embed}\0${text}`)
    .digest("hex")
    .slice(0, HASH_BYTES * 2);

const isFloat32 = (value: unknown): boolean =>
  typeof value === "number" && Number.isFinite(Math.fround(value));

export const createEmbedder = (model: EmbeddingModel, dims: number): Embedder => {
  const written = (vector: unknown): string => {
    if (!Array.isArray(vector) || vector.length !== dims) {
      const given = Array.isArray(vector) ? `${vector.length} numbers` : "no list";
      throw unavailable(
        `The embedding model of 'store.index' gave ${given} for a text, 'store.index.dims' says ${dims}.`,
      );
    }
    if (!vector.every(isFloat32)) {
      throw unavailable("The embedding model of 'store.index' gave something that is no finite number.");
    }
    return JSON.stringify(vector);
  };

  const asked = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    try {
      return await work();
    } catch (cause) {
      // A provider's error may hold parts of its key, so the caller does not see it.
      throw unavailable(
        "The embedding model of 'store.index' failed; nothing was stored or searched.",
        cause,
      );
    }
  };

  return {
    async documents(texts) {
      if (texts.length === 0) return [];
      const vectors = await asked(() => model.embedDocuments([...texts]));
      if (!Array.isArray(vectors) || vectors.length !== texts.length) {
        throw unavailable(
          `The embedding model of 'store.index' gave ${Array.isArray(vectors) ? vectors.length : "no"} vectors ` +
            `for ${texts.length} texts.`,
        );
      }
      return vectors.map(written);
    },

    query: async (text) => written(await asked(() => model.embedQuery(text))),
  };
};

/** Packages that the project installs. */
const PROVIDERS: Readonly<Record<string, { package: string; className: string }>> = {
  openai: { package: "@langchain/openai", className: "OpenAIEmbeddings" },
  azure_openai: { package: "@langchain/openai", className: "AzureOpenAIEmbeddings" },
  cohere: { package: "@langchain/cohere", className: "CohereEmbeddings" },
  "google-genai": { package: "@langchain/google-genai", className: "GoogleGenerativeAIEmbeddings" },
  google_genai: { package: "@langchain/google-genai", className: "GoogleGenerativeAIEmbeddings" },
  google_vertexai: { package: "@langchain/google-vertexai", className: "VertexAIEmbeddings" },
  mistralai: { package: "@langchain/mistralai", className: "MistralAIEmbeddings" },
  ollama: { package: "@langchain/ollama", className: "OllamaEmbeddings" },
  bedrock: { package: "@langchain/aws", className: "BedrockEmbeddings" },
};

type ModelClass = new (fields: { model: string }) => EmbeddingModel;
type EmbeddingFunction = (texts: string[]) => number[][] | Promise<number[][]>;

const isModel = (value: unknown): value is EmbeddingModel =>
  typeof value === "object" &&
  value !== null &&
  (["embedDocuments", "embedQuery"] as const).every(
    (name) => typeof (value as Record<string, unknown>)[name] === "function",
  );

const ofFunction = (embed: EmbeddingFunction): EmbeddingModel => ({
  embedDocuments: async (texts) => await embed(texts),
  embedQuery: async (text) => (await embed([text]))[0] ?? [],
});

const ofProvider = async (embed: string): Promise<EmbeddingModel> => {
  const [name = "", ...rest] = embed.split(":");
  const provider = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
  if (provider === undefined) {
    throw new GraphLoadError(
      `'store.index.embed' is '${embed}': '${name}' is not one of the providers ${Object.keys(PROVIDERS).join(", ")}; ` +
        "an export of yours is written './file.ts:export'.",
    );
  }
  const module = (await import(provider.package).catch((cause: unknown) => {
    throw new GraphLoadError(
      `'store.index.embed' is '${embed}', which needs the package ${provider.package}: ${messageOf(cause)}.`,
      { cause },
    );
  })) as Record<string, ModelClass>;
  const Model = module[provider.className];
  if (Model === undefined) {
    throw new GraphLoadError(`The package ${provider.package} has no ${provider.className}.`);
  }
  try {
    return new Model({ model: rest.join(":") });
  } catch (cause) {
    throw new GraphLoadError(`'store.index.embed' is '${embed}': ${messageOf(cause)}.`, { cause });
  }
};

/**
 * `embed` names a provider's model or an export of the project: a function of texts, LangChain's `Embeddings`, or a
 * promise of one. Throws `GraphLoadError`.
 */
export const loadEmbedder = async ({ embed, module, dims }: StoreIndexConfig): Promise<Embedder> => {
  if (module === undefined) {
    return createEmbedder(await ofProvider(embed), dims);
  }
  const entry = { ...module, id: embed, description: undefined, subject: "'store.index.embed'" };
  const loader = await createModuleLoader([entry]);
  const { exported } = await loader.load(entry);
  const value = await exported;
  const model =
    typeof value === "function" ? ofFunction(value as EmbeddingFunction) : isModel(value) ? value : undefined;
  if (model === undefined) {
    throw new GraphLoadError(
      `'store.index.embed' (${module.file}): '${module.exportName}' makes no embeddings. Export a function of a ` +
        "list of texts that returns a list of vectors, or an object with embedDocuments and embedQuery.",
    );
  }
  return createEmbedder(model, dims);
};
