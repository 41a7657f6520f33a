/**
 * Loads the TypeScript loader. It keeps what it has compiled in the folder for temporary files, and ends the process if it
 * can't: where that folder can't be written, as in a container whose files are read-only, it is told to keep nothing.
 */
import { accessSync, constants } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";

try {
  accessSync(tmpdir(), constants.W_OK);
} catch {
  process.env.TSX_DISABLE_CACHE = "1";
}
await import("tsx");
// Who asks whether it is needed need not look any more.
Reflect.set(globalThis, Symbol.for("threadloom.typescript-loader"), true);
