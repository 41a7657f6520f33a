import { fileURLToPath } from "node:url";

/** The project whose graphs clients are tried with. */
export const CLIENT_GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
