import { fileURLToPath } from "node:url";

export const ENGINE_GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
