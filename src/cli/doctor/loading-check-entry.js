/** Program of the process in which `doctor` loads the project. JavaScript for the reason in graph-process-entry.js. */
import process from "node:process";

// As in serve.ts.
process.env.LANGCHAIN_CALLBACKS_BACKGROUND ??= "false";
await import("../../graphs/langgraph-ahead.js");
await import("../../platform/lib/source-loader.js");
await import("./loading-check.ts");
