/** Loading LangGraph through the TypeScript loader takes 0.6 s more CPU. The published package needs no loader. */
import { existsSync } from "node:fs";
import { URL } from "node:url";

if (existsSync(new URL("./graphs.ts", import.meta.url)))
  // If LangGraph is missing, its importers report that.
  await import("@langchain/langgraph").catch(() => undefined);
