/**
 * Loads LangGraph ahead of the loader for TypeScript, where this server runs from its source: through the loader, its
 * files take 0.6 s of CPU more. The package holds JavaScript, and does not load that for itself.
 */
import { existsSync } from "node:fs";
import { URL } from "node:url";

if (existsSync(new URL("./graphs.ts", import.meta.url)))
  // Where it is missing, what needs it says so.
  await import("@langchain/langgraph").catch(() => undefined);
