/**
 * Program of the process that reads schemas from source (graphs/source/). JavaScript for the reason in
 * graph-process-entry.js.
 */
await import("../../platform/lib/source-loader.js");
await import("./schema-process.ts");
