/** The program of the server of `threadloom dev`, which launch.ts starts. JavaScript, as graph-process-entry.js is. */
import process from "node:process";

await import("../../graphs/langgraph-ahead.js");
await import("../../platform/lib/source-loader.js");
const { serveInDevelopment } = await import("./server.ts");
await serveInDevelopment(JSON.parse(process.argv[2] ?? "{}"));
