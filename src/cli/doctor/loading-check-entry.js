/**
 * The program of the process in which `doctor` loads what belongs to the project. JavaScript, because it brings the loader for TypeScript along
 * where this server runs from its source.
 */
import process from "node:process";

// As in serve.ts.
process.env.LANGCHAIN_CALLBACKS_BACKGROUND ??= "false";
await import("../../graphs/langgraph-ahead.js");
await import("../../platform/lib/source-loader.js");
await import("./loading-check.ts");
