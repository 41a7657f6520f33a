/**
 * The program of the process that reads schemas from source (graphs/source/). JavaScript, because it brings the loader for
 * TypeScript along.
 */
await import("./typescript-loader.js");
await import("./schema-process.ts");
