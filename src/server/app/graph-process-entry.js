/**
 * Program of a graph process (engine/executors/process/). JavaScript, because it registers the TypeScript loader when
 * the server runs from source; bin/threadloom.js puts the path of tsconfig.json into the environment.
 */
import process from "node:process";

// As in serve.ts.
process.env.LANGCHAIN_CALLBACKS_BACKGROUND ??= "false";
await import("../../graphs/langgraph-ahead.js");
await import("../../platform/lib/source-loader.js");
await import("./graph-process.ts");
