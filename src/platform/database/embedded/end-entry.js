/** Starts `end.ts` with the TypeScript loader. */
await import("../../lib/source-loader.js");
await import("./end.ts");
