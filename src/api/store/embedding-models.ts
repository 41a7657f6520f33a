import { GraphLoadError, messageOf } from "../../graphs/project/langgraph-json.ts";
import type { StoreIndexConfig } from "../../graphs/project/store-embedding.ts";
import { createModuleLoader } from "../../graphs/modules.ts";
import { createEmbedder, type Embedder, type EmbeddingModel } from "./embedding.ts";

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
