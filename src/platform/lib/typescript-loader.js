/** tsx ends the process if the folder for temporary files is not writable, as in a read-only container. */
import { accessSync, constants } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";

try {
  accessSync(tmpdir(), constants.W_OK);
} catch {
  process.env.TSX_DISABLE_CACHE = "1";
}
await import("tsx");
// Shows other code that the loader is loaded.
Reflect.set(globalThis, Symbol.for("threadloom.typescript-loader"), true);
