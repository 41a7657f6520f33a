import { fileURLToPath } from "node:url";

/** The graphs of the engine's tests. */
export const ENGINE_GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
