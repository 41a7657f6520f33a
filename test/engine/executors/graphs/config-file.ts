import { fileURLToPath } from "node:url";

/** Graphs that harm their process, and some that don't. */
export const HOSTILE_GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
