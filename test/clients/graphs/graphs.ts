import { fileURLToPath } from "node:url";

export const CLIENT_GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
