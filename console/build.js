/**
 * Builds the page into `dist/page`, from where the server sends it. Does nothing where it is built from these very files, and,
 * with `--if-possible`, where Vite isn't installed (`npm ci --omit=dev`): there the page comes from elsewhere, or there is none.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const lockFile = new URL("../package-lock.json", import.meta.url);
const builtFrom = new URL("../dist/page.built-from", import.meta.url);

const fingerprint = async () => {
  const hash = createHash("sha256");
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`);
  for (const file of files.sort()) hash.update(file.slice(folder.length)).update(await readFile(file));
  if (existsSync(lockFile)) hash.update(await readFile(lockFile));
  return hash.digest("hex");
};

const isThere = (name) => {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
};

export const buildConsole = async ({ ifPossible = false } = {}) => {
  const now = await fingerprint();
  if (existsSync(builtFrom) && (await readFile(builtFrom, "utf8")) === now) return "is built already";
  if (ifPossible && !isThere("vite")) return "is not built: Vite is not installed";
  const { build } = await import("vite");
  await build({ configFile: fileURLToPath(new URL("./vite.config.js", import.meta.url)), logLevel: "warn" });
  await writeFile(builtFrom, now);
  return "is built";
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(
    `The console ${await buildConsole({ ifPossible: process.argv.includes("--if-possible") })}.\n`,
  );
}
