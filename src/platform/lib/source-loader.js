/**
 * Each program imports this file first. From source it loads tsx. The package contains JavaScript, which Node 22 and
 * newer keep compiled: beside the code, because other users can write into the folder for temporary files.
 */
import { existsSync } from "node:fs";
import * as module from "node:module";
import { URL, fileURLToPath } from "node:url";

if (existsSync(new URL("./ids.ts", import.meta.url))) await import("./typescript-loader.js");
// Does nothing if the folder is not writable, or if the environment names another.
else module.enableCompileCache?.(fileURLToPath(new URL("../../../.cache/", import.meta.url)));
