#!/usr/bin/env node
/**
 * The command `threadloom`. Plain JavaScript that old versions of Node can read, too: it says that they are too old, which
 * src/main.ts could not, because it can't even be loaded by them. Then it gives the TypeScript loader the tsconfig.json
 * of the project whose graphs are served, which must be known before the first file is loaded.
 */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { URL } from "node:url";

/** `util.parseEnv` came with it. */
const NODE_AT_LEAST = [20, 12];

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < NODE_AT_LEAST[0] || (major === NODE_AT_LEAST[0] && minor < NODE_AT_LEAST[1])) {
  process.stderr.write(
    `threadloom: Node ${process.versions.node} is too old: version ${NODE_AT_LEAST.join(".")} or newer is needed. ` +
      "Get one from https://nodejs.org, or with nvm install 22.\n",
  );
  process.exit(1);
}

/** As src/platform/config/config.ts finds it; what is wrong with the options is said there. */
const configFile = () => {
  const argv = process.argv.slice(2);
  const at = argv.findIndex((argument) => /^(--config(=|$)|-c)/.test(argument));
  const given = at < 0 ? undefined : argv[at].replace(/^(--config=?|-c)/, "") || argv[at + 1];
  const variable = (process.env.LANGGRAPH_CONFIG || "").trim();
  return given || (variable.startsWith("{") ? "" : variable) || "langgraph.json";
};

/** The nearest in the folder or above it, as TypeScript finds it. */
const tsconfigOf = (folder) => {
  const file = join(folder, "tsconfig.json");
  if (existsSync(file)) return file;
  return dirname(folder) === folder ? undefined : tsconfigOf(dirname(folder));
};

const tsconfig = tsconfigOf(dirname(resolve(configFile())));
if (tsconfig !== undefined && !process.env.TSX_TSCONFIG_PATH) process.env.TSX_TSCONFIG_PATH = tsconfig;

// The package holds what `npm run build` has made, and no source; the repository runs from source, whatever was built there.
if (existsSync(new URL("../src/main.ts", import.meta.url))) {
  if (process.argv[2] === "start") await import("../src/graphs/langgraph-ahead.js");
  await import("../src/platform/lib/typescript-loader.js");
  await import("../src/main.ts");
} else {
  await import("../dist/platform/lib/source-loader.js");
  await import("../dist/main.js");
}
