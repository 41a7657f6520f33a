/**
 * Program of the server of `threadloom dev`, started by launch.ts. JavaScript for the reason in graph-process-entry.js.
 */
import process from "node:process";

await import("../../graphs/langgraph-ahead.js");
await import("../../platform/lib/source-loader.js");
const { serveInDevelopment } = await import("./server.ts");
await serveInDevelopment(JSON.parse(process.argv[2] ?? "{}"));
