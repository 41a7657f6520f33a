/**
 * The program of the process that reads schemas from source (graphs/source/). JavaScript, because it brings the loader for
 * TypeScript along.
 */
await import("tsx");
await import("./schema-process.ts");
