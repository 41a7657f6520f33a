/** The program that is started for `end.ts`, with its loader. */
await import("../../lib/source-loader.js");
await import("./end.ts");
