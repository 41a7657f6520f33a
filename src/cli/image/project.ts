import { readFile } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { z } from "zod";
import { StartError } from "../../platform/domain/errors.ts";
import { TYPESCRIPT } from "../../graphs/modules.ts";
import { fileExists } from "../../platform/lib/file-exists.ts";
import { JsonFileError, readJsonFile } from "../../graphs/project/json-file.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import { installationOf, lockFilesOf, type Installation } from "./installing.ts";

export interface ImageProject {
  configFile: string;
  graphs: readonly string[];
  nodeVersion: string;
  dockerfileLines: readonly string[];
  envFile: string | undefined;
  /** `needsProject`: for example at the root of a workspace. */
  installation: Installation;
  /** TypeScript, a devDependency that the image leaves out, reads schemas from source. */
  readsTypesWithDevelopment: boolean;
  /** Keys without effect on this image. */
  meaningless: readonly string[];
}

const USUAL_NODE = "24";
/** These scripts may need any file. */
const INSTALL_SCRIPTS = ["preinstall", "install", "postinstall", "prepare"];
const LOCAL = /^(?:file|link|portal):(.+)$|^(\.{1,2}\/.+)$/;
const MEANINGLESS =
  /^(base_image|image_distro|python_version|pip_.*|keep_pkg_tools|api_version|docker_compose_file)$/;

const imageKeys = z.looseObject({
  node_version: z
    .union([z.string(), z.number()])
    .transform(String)
    .pipe(z.string().regex(/^\d{1,3}(\.\d{1,3}){0,2}$/, 'must be a version of Node like "24"'))
    .nullish(),
  dockerfile_lines: z.array(z.string().regex(/^[^\r\n]*$/, "must be one line each")).nullish(),
  env: z.unknown().optional(),
});
const packageKeys = z.looseObject({
  dependencies: z.record(z.string(), z.string()).optional(),
  devDependencies: z.record(z.string(), z.string()).optional(),
  optionalDependencies: z.record(z.string(), z.string()).optional(),
  workspaces: z.unknown().optional(),
  packageManager: z.string().optional(),
  scripts: z.record(z.string(), z.string()).optional(),
  pnpm: z.looseObject({ patchedDependencies: z.unknown() }).partial().optional(),
});
type PackageKeys = z.output<typeof packageKeys>;

const isWorkspaceRoot = async (folder: string): Promise<boolean> => {
  if (await fileExists(join(folder, "pnpm-workspace.yaml"))) return true;
  const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "{}");
  try {
    return packageKeys.parse(JSON.parse(text)).workspaces !== undefined;
  } catch {
    return false;
  }
};

const workspaceAbove = async (folder: string): Promise<string | undefined> => {
  const parent = dirname(folder);
  if (parent === folder) return undefined;
  return (await isWorkspaceRoot(parent)) ? parent : await workspaceAbove(parent);
};

const readPackageKeys = async (folder: string): Promise<PackageKeys> => {
  const file = join(folder, "package.json");
  const json = await readJsonFile(file).catch((error: unknown) => {
    if (!(error instanceof JsonFileError)) throw error;
    throw new StartError(error.message, { cause: error });
  });
  const parsed = packageKeys.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new StartError(`${file} is not valid: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}.`);
};

/** An image can't reach local packages outside of the project. */
const hasLocalPackages = (folder: string, { dependencies, optionalDependencies }: PackageKeys): boolean => {
  const local = Object.entries({ ...dependencies, ...optionalDependencies }).flatMap(([name, wanted]) => {
    const [, marked, plain] = LOCAL.exec(wanted) ?? [];
    const path = marked ?? plain;
    return path === undefined ? [] : [{ name, path, wanted }];
  });
  for (const { name, path, wanted } of local) {
    const way = relative(folder, resolve(folder, path));
    if (way.startsWith("..") || isAbsolute(way))
      throw new StartError(
        `${name} is '${wanted}' in package.json, outside of ${folder}, where an image can't reach it. ` +
          "Copy it into a folder of the project, and install it from there.",
      );
  }
  return local.length > 0;
};

/** @throws StartError or GraphLoadError */
export const readImageProject = async (path: string): Promise<ImageProject> => {
  const file = resolve(path);
  const { entries } = await readGraphConfig(file); // validates the other keys
  const folder = dirname(file);
  const parsed = imageKeys.safeParse(await readJsonFile(file));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new StartError(`${file} is not valid: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}.`);
  }
  const keys = await readPackageKeys(folder);
  const { dependencies = {}, devDependencies = {}, scripts = {} } = keys;
  if (!Object.hasOwn(dependencies, "threadloom") && Object.hasOwn(devDependencies, "threadloom"))
    throw new StartError(
      "package.json has threadloom in devDependencies, which an image leaves out. Run 'npm install --save-prod threadloom'.",
    );
  const isWorkspace = await isWorkspaceRoot(folder);
  const hasLock = (await lockFilesOf(folder)).length > 0;
  const root = hasLock || isWorkspace ? undefined : await workspaceAbove(folder);
  if (root !== undefined)
    throw new StartError(
      `${folder} is a part of the workspace ${root}, which has its lock file and other packages, so build the image there. ` +
        `Put a langgraph.json into ${root} that names the same graphs, and npm install threadloom there.`,
    );
  const installation = await installationOf(folder, keys.packageManager);
  const needsProject =
    installation.needsProject ||
    isWorkspace ||
    hasLocalPackages(folder, keys) ||
    keys.pnpm?.patchedDependencies !== undefined ||
    INSTALL_SCRIPTS.some((script) => Object.hasOwn(scripts, script));
  const { node_version: nodeVersion, dockerfile_lines: lines, env } = parsed.data;
  return {
    configFile: basename(file),
    graphs: entries.map(({ id }) => id),
    nodeVersion: nodeVersion ?? USUAL_NODE,
    dockerfileLines: lines ?? [],
    envFile: typeof env === "string" ? env : undefined,
    installation: { ...installation, needsProject },
    readsTypesWithDevelopment:
      Object.hasOwn(devDependencies, "typescript") &&
      !Object.hasOwn(dependencies, "typescript") &&
      entries.some((entry) => TYPESCRIPT.test(entry.file)),
    meaningless: Object.keys(parsed.data).filter((key) => MEANINGLESS.test(key)),
  };
};
