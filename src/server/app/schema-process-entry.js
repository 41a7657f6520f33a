/**
 * The program of the process that reads schemas from source (graphs/source/). JavaScript, because it brings the loader for
 * TypeScript along where this server runs from its source.
 */
await import("../../platform/lib/source-loader.js");
await import("./schema-process.ts");
