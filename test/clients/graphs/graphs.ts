import { fileURLToPath } from "node:url";

/** The project with the graphs for tests of clients. */
export const CLIENT_GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
