import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GraphLoadError, readGraphConfig, type GraphConfig } from "../../graphs/project/langgraph-json.ts";
import { JsonFileError } from "../../graphs/project/json-file.ts";
import { canReadTypes } from "../../graphs/source/compiler.ts";
import { TYPESCRIPT } from "../../graphs/modules.ts";
import type { ProjectKeys } from "../../platform/config/project-keys.ts";
import { fail, info, ok, warn, type Check } from "./checks.ts";

interface CheckedProject {
  project: GraphConfig | undefined;
  checks: Check[];
}

export const checkProject = async (file: string, given: ProjectKeys): Promise<CheckedProject> => {
  try {
    const project = await readGraphConfig(file, given);
    const graphs = `${project.entries.length} graph${project.entries.length === 1 ? "" : "s"}`;
    const { path, warning, forImages } = project;
    const checks = [
      warning === undefined
        ? ok("langgraph.json", `${path}, ${graphs}`)
        : warn(
            "langgraph.json",
            warning,
            `Correct misspelt keys in ${path}, and remove keys without effect.`,
          ),
      ...(forImages.length === 0
        ? []
        : [
            info(
              "langgraph.json",
              `${forImages.join(", ")}: only for images of the hosted service or of 'threadloom dockerfile'; ` +
                "a server does not read them",
            ),
          ]),
    ];
    return { project, checks };
  } catch (error) {
    if (!(error instanceof GraphLoadError)) throw error;
    const kind = error.cause instanceof JsonFileError ? error.cause.kind : undefined;
    const advice =
      kind === "missing"
        ? "Write this file, make a project with 'threadloom new', or name another file with --config."
        : `${kind === undefined ? "Make it name your graphs" : "Correct it"}, or name another file with --config.`;
    return { project: undefined, checks: [fail("langgraph.json", error.message, advice)] };
  }
};

/** As in the peerDependencies of package.json. */
const SUPPORTED = [
  { name: "@langchain/langgraph", from: [0, 4], below: 2 },
  { name: "@langchain/core", from: [0, 3], below: 2 },
] as const;

/** Not by `require.resolve`: a package may not export its package.json. */
const installedVersion = async (name: string, folder: string): Promise<string | undefined> => {
  for (let above = folder; ; above = dirname(above)) {
    const text = await readFile(join(above, "node_modules", name, "package.json"), "utf8").catch(
      () => undefined,
    );
    if (text !== undefined) return (JSON.parse(text) as { version?: string }).version;
    if (dirname(above) === above) return undefined;
  }
};

export const checkVersions = (folder: string): Promise<Check[]> =>
  Promise.all(
    SUPPORTED.map(async ({ name, from: [fromMajor, fromMinor], below }) => {
      const range = `${fromMajor}.${fromMinor} or newer, below ${below}.0`;
      const title = name.replace("@langchain/", "");
      const version = await installedVersion(name, folder);
      if (version === undefined)
        return fail(title, `${name} is not installed for ${folder}`, `npm install ${name}`);
      const [major = 0, minor = 0] = version.split(".").map(Number);
      const isOld = major < fromMajor || (major === fromMajor && minor < fromMinor);
      return isOld || major >= below
        ? fail(title, `${name} ${version}; supported versions: ${range}`, `npm install ${name}@latest`)
        : ok(title, `${name} ${version}`);
    }),
  );

export const checkTypescript = async ({ entries, path }: GraphConfig): Promise<Check[]> => {
  if (!entries.some(({ file }) => TYPESCRIPT.test(file))) return [];
  const version = await installedVersion("typescript", dirname(path));
  if (version !== undefined && canReadTypes(version)) return [ok("typescript", `typescript ${version}`)];
  const what =
    version === undefined
      ? `typescript is not installed for ${dirname(path)}`
      : `typescript ${version} has no API to read types`;
  const effect = "the console shows fields that only TypeScript types describe as plain JSON";
  return [info("typescript", `${what}: ${effect} (npm install --save-dev typescript@5)`)];
};
