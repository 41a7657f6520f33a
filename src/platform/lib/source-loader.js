/** Loads tsx if this server runs from source. The package contains JavaScript. */
import { existsSync } from "node:fs";
import { URL } from "node:url";

if (existsSync(new URL("./ids.ts", import.meta.url))) await import("./typescript-loader.js");
