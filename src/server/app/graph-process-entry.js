/**
 * The program of a graph process (engine/executors/process/). JavaScript, because it brings the loader for TypeScript
 * along where this server runs from its source, with the tsconfig.json that bin/threadloom.js has found and put into the environment.
 */
import process from "node:process";

// As in serve.ts.
process.env.LANGCHAIN_CALLBACKS_BACKGROUND ??= "false";
await import("../../graphs/langgraph-ahead.js");
await import("../../platform/lib/source-loader.js");
await import("./graph-process.ts");
