await import("../../lib/source-loader.js");
await import("./end.ts");
