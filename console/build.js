/**
 * Builds the page into `dist/page`, from where the server sends it. Does nothing where it is built from these very files, and,
 * with `--if-possible`, where Vite isn't installed (`npm ci --omit=dev`): there the page comes from elsewhere, or there is none.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const lockFile = new URL("../package-lock.json", import.meta.url);
const builtFrom = new URL("../dist/page.built-from", import.meta.url);
const building = new URL("../dist/page.building", import.meta.url);
/** A build takes seconds; one that has not ended by then was killed. */
const BUILT_WITHIN_MS = 180_000;
const LOOKED_AT_EVERY_MS = 100;

const NAMED_AT_MOST = 3;

class OutdatedPackagesError extends Error {}

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

/** Tests run in several processes: one that builds would take away the files that another has begun to serve. */
const oneAtATime = async (build) => {
  await mkdir(new URL("../dist/", import.meta.url), { recursive: true });
  for (;;) {
    try {
      await mkdir(building);
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const { mtimeMs } = await stat(building).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > BUILT_WITHIN_MS) await rm(building, { recursive: true, force: true });
    await pause(LOOKED_AT_EVERY_MS);
  }
  try {
    return await build();
  } finally {
    await rm(building, { recursive: true, force: true });
  }
};

const json = async (url) => JSON.parse(await readFile(url, "utf8").catch(() => "{}"));

/** Packages that are not what package-lock.json says: after a pull, until `npm ci`. */
const outdatedPackages = async () => {
  const { packages = {} } = await json(lockFile);
  const { dependencies, devDependencies } = packages[""] ?? {};
  const outdated = [];
  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    const wanted = packages[`node_modules/${name}`]?.version;
    const { version } = await json(new URL(`../node_modules/${name}/package.json`, import.meta.url));
    if (wanted !== undefined && version !== wanted)
      outdated.push(`${name} is ${version === undefined ? "missing" : `${version} instead of ${wanted}`}`);
  }
  return outdated;
};

/** Why a build has failed, in a sentence where that is known. */
const explained = async (error) => {
  const outdated = await outdatedPackages();
  if (outdated.length === 0) return error;
  const named = outdated.slice(0, NAMED_AT_MOST).join(", ");
  const more = outdated.length > NAMED_AT_MOST ? `, and ${outdated.length - NAMED_AT_MOST} more` : "";
  return new OutdatedPackagesError(
    `The console can't be built, since node_modules is not what package-lock.json says: ${named}${more}. Run npm ci.`,
    { cause: error },
  );
};

const isBuiltFrom = async (files) => existsSync(builtFrom) && (await readFile(builtFrom, "utf8")) === files;

export const buildConsole = async ({ ifPossible = false } = {}) => {
  const now = await fingerprint();
  if (await isBuiltFrom(now)) return "is built already";
  if (ifPossible && !isThere("vite")) return "is not built: Vite is not installed";
  return oneAtATime(async () => {
    if (await isBuiltFrom(now)) return "is built already";
    // Under a test runner it is "test", which Vite takes for development: React would weigh 65 KB more, and warn.
    const { NODE_ENV } = process.env;
    process.env.NODE_ENV = "production";
    try {
      const { build } = await import("vite");
      await build({
        configFile: fileURLToPath(new URL("./vite.config.js", import.meta.url)),
        logLevel: "warn",
      });
    } catch (error) {
      throw await explained(error);
    } finally {
      if (NODE_ENV === undefined) delete process.env.NODE_ENV;
      else process.env.NODE_ENV = NODE_ENV;
    }
    await writeFile(builtFrom, now);
    return "is built";
  });
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const done = await buildConsole({ ifPossible: process.argv.includes("--if-possible") });
    process.stdout.write(`The console ${done}.\n`);
  } catch (error) {
    if (!(error instanceof OutdatedPackagesError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
