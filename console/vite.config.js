import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compressFiles } from "./compress-files.js";

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));

/**
 * Addresses are relative: the page works below any prefix, also one that a proxy takes away. Where the server is, it finds out from its own
 * address (src/server/address.ts).
 */
export default defineConfig({
  root: folder("."),
  base: "./",
  // One copy: @langchain/react names an older one of its own, in which a second run after a reload ends at once.
  resolve: {
    dedupe: ["@langchain/langgraph-sdk", "@langchain/core", "react", "react-dom"],
    alias: [
      // Words of a schema are plain text.
      { find: "markdown-to-jsx/react", replacement: folder("./src/parts/schema-form/plain-text.tsx") },
      { find: /^langsmith(\/.*)?$/, replacement: folder("./src/server/no-tracing.ts") },
    ],
  },
  // LangChain asks for the environment; a page has none.
  define: { "process.env": "{}" },
  plugins: [react(), compressFiles()],
  build: {
    outDir: folder("../dist/page"),
    emptyOutDir: true,
    target: "es2022",
    // What is sent is compressed by then; Vite's own figures are of gzip.
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2_000,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // Many small files would wait for each other: browsers open six connections.
          groups: [
            { name: "shared", test: /\/console\/src\/(design|parts\/[^/]+$)|lucide-react/, minShareCount: 2 },
          ],
        },
      },
    },
  },
});
