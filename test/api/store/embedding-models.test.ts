import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readGraphConfig } from "../../../src/graphs/project/langgraph-json.ts";
import type { StoreIndexConfig } from "../../../src/graphs/project/store-embedding.ts";
import { loadEmbedder, textsOf } from "../../../src/api/store/embedding.ts";
import { DIMS, vectorOf } from "./fixtures/bag-of-words.ts";

const FIXTURE = fileURLToPath(new URL("fixtures/bag-of-words.ts", import.meta.url));
const ofExport = (exportName: string, file = FIXTURE): StoreIndexConfig => ({
  embed: `./bag-of-words.ts:${exportName}`,
  module: { file, exportName },
  dims: DIMS,
  fields: ["$"],
});
const ofModel = (embed: string, dims = 3): StoreIndexConfig => ({
  embed,
  module: undefined,
  dims,
  fields: ["$"],
});

interface EmbeddingRequest {
  model: string;
  input: string | string[];
  encoding_format?: string;
}

const base64Of = (vector: number[]): string =>
  Buffer.from(Float32Array.from(vector).buffer).toString("base64");

describe("store.index in langgraph.json", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "threadloom-test-index-"));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  const read = async (index: unknown) => {
    const path = join(folder, "langgraph.json");
    await writeFile(path, JSON.stringify({ graphs: { a: "./a.ts:graph" }, store: { index } }));
    return (await readGraphConfig(path)).storeIndex;
  };

  it("names an export, relative to the file, or a provider's model", async () => {
    expect(await read({ embed: "./lib/embeddings.ts:embed", dims: 8, fields: ["text", "a.b"] })).toEqual({
      embed: "./lib/embeddings.ts:embed",
      module: { file: join(folder, "lib/embeddings.ts"), exportName: "embed" },
      dims: 8,
      fields: ["text", "a.b"],
    });
    expect(await read({ embed: "embeddings.js:embed", dims: 8 })).toMatchObject({
      module: { file: join(folder, "embeddings.js") },
      fields: ["$"],
    });
    expect(await read({ embed: "ollama:nomic-embed-text:v1.5", dims: 768 })).toEqual({
      embed: "ollama:nomic-embed-text:v1.5",
      module: undefined,
      dims: 768,
      fields: ["$"],
    });
    expect(await read(undefined)).toBeUndefined();
    expect(await read(null)).toBeUndefined();
  });

  it.each([
    ["store.index.embed", { dims: 8 }],
    ["store.index.embed", { embed: "embeddings", dims: 8 }],
    ["store.index.embed", { embed: "openai:", dims: 8 }],
    ["store.index.dims", { embed: "openai:x" }],
    ["store.index.dims", { embed: "openai:x", dims: 0 }],
    ["store.index.dims", { embed: "openai:x", dims: 16_001 }],
    ["store.index.fields", { embed: "openai:x", dims: 8, fields: [] }],
    ["store.index.fields", { embed: "openai:x", dims: 8, fields: "text" }],
  ])("is refused if %s is wrong", async (field, index) => {
    await expect(read(index)).rejects.toThrow(`langgraph.json is not valid: ${field}`);
  });
});

describe("an embedding model", () => {
  it.each(["embed", "embeddings", "promised"])(
    "is the export '%s', recognised by its methods",
    async (name) => {
      const embedder = await loadEmbedder(ofExport(name));
      expect(await embedder.documents(["tea", "rain"])).toEqual(
        ["tea", "rain"].map((text) => JSON.stringify(vectorOf(text))),
      );
      expect(await embedder.query("tea")).toBe(JSON.stringify(vectorOf("tea")));
      expect(await embedder.documents([])).toEqual([]);
    },
  );

  it.each([
    ["nothing", FIXTURE, "'nothing' makes no embeddings. Export a function"],
    ["DIMS", FIXTURE, "'DIMS' makes no embeddings. Export a function"],
    ["missing", FIXTURE, "has no export 'missing': it exports"],
    ["embed", `${FIXTURE}.gone.ts`, "does not exist"],
  ])("is refused with a clear error: %s of %s", async (name, file, sentence) => {
    const failing = loadEmbedder(ofExport(name, file));
    await expect(failing).rejects.toThrow(sentence);
    await expect(failing).rejects.toThrow(/^'store\.index\.embed'/);
  });

  it("is refused with a clear error if its provider is unknown or not installed", async () => {
    await expect(loadEmbedder(ofModel("acme:x"))).rejects.toThrow(
      "'acme' is not one of the providers openai,",
    );
    await expect(loadEmbedder(ofModel("__proto__:x"))).rejects.toThrow("is not one of the providers");
    await expect(loadEmbedder(ofModel("cohere:embed-english-v3.0"))).rejects.toThrow(
      "which needs the package @langchain/cohere",
    );
  });

  describe("of a provider", () => {
    afterEach(() => {
      vi.unstubAllEnvs();
    });

    it("is called through LangChain", async () => {
      const requests: { url: string | undefined; body: EmbeddingRequest }[] = [];
      const textOf = async (request: IncomingMessage): Promise<string> => {
        let text = "";
        for await (const chunk of request) text += String(chunk);
        return text;
      };
      const server = createServer((request, response) => {
        void textOf(request).then((text) => {
          const body = JSON.parse(text) as EmbeddingRequest;
          requests.push({ url: request.url, body });
          const data = [body.input].flat().map((_, index) => ({
            object: "embedding",
            index,
            embedding: body.encoding_format === "base64" ? base64Of([index, 1, 2]) : [index, 1, 2],
          }));
          response.setHeader("content-type", "application/json");
          response.end(JSON.stringify({ object: "list", model: body.model, data, usage: {} }));
        });
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      try {
        const { port } = server.address() as AddressInfo;
        vi.stubEnv("OPENAI_BASE_URL", `http://127.0.0.1:${port}/v1`);
        vi.stubEnv("OPENAI_API_KEY", "test");
        const embedder = await loadEmbedder(ofModel("openai:text-embedding-3-small"));
        expect((await embedder.documents(["a", "b"])).map((text) => JSON.parse(text) as number[])).toEqual([
          [0, 1, 2],
          [1, 1, 2],
        ]);
        expect(JSON.parse(await embedder.query("c"))).toEqual([0, 1, 2]);
        expect(requests[0]).toMatchObject({
          url: "/v1/embeddings",
          body: { model: "text-embedding-3-small", input: ["a", "b"] },
        });
        const other = await loadEmbedder(ofModel("openai:text-embedding-3-small", 1536));
        await expect(other.query("c")).rejects.toThrow(
          "gave 3 numbers for a text, 'store.index.dims' says 1536",
        );
      } finally {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    });
  });
});

describe("the texts of an item", () => {
  it("are those at LangGraph's paths, each once and none blank", () => {
    const value = {
      a: "x",
      list: [{ t: "x" }, { t: "y" }, { t: " " }, {}],
      n: 5,
      deep: { a: [true] },
      gone: null,
    };
    expect(textsOf(value, ["a", "list[*].t", "n", "gone", "missing", "deep.a[0]"])).toEqual([
      "x",
      "y",
      "5",
      "true",
    ]);
    expect(textsOf(value, ["{a,deep.a}", "list[-2].t", "$.n", "list[9]", "a.x"])).toEqual([
      "x",
      JSON.stringify([true], null, 2),
      "5",
    ]);
    expect(textsOf({ m: { one: { t: "1" }, two: { t: "2" } } }, ["m.*.t"])).toEqual(["1", "2"]);
    expect(textsOf({ a: 1 }, ["$"])).toEqual([JSON.stringify({ a: 1 }, null, 2)]);
    expect(textsOf(value, ["__proto__", "constructor", "list[x]", "a..b"])).toEqual([]);
  });
});
