import { access, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { z } from "zod";
import { StartError } from "../../domain/errors.ts";
import { readGraphConfig } from "../../project/langgraph-json.ts";

/** What installs the packages of a project, by the lock file that it has. */
export type PackageManager = "npm" | "pnpm" | "yarn";

/** What is to be known of a project to make an image of it. */
export interface ImageProject {
  /** Name of langgraph.json. */
  configFile: string;
  nodeVersion: string;
  dockerfileLines: readonly string[];
  /** The file that `env` names; undefined if it names none. */
  envFile: string | undefined;
  manager: PackageManager;
  /** Undefined: there is none. */
  lockFile: string | undefined;
  /** It is the root of a workspace: its packages can be installed only where the folders of the others are. */
  isWorkspace: boolean;
  /** Keys of langgraph.json that mean nothing here. */
  meaningless: readonly string[];
}

const USUAL_NODE = "24";
const LOCK_FILES: readonly (readonly [file: string, manager: PackageManager])[] = [
  ["package-lock.json", "npm"],
  ["pnpm-lock.yaml", "pnpm"],
  ["yarn.lock", "yarn"],
];
/** The images are of Node, and npm installs the packages. */
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
  workspaces: z.unknown().optional(),
});

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const isWorkspaceRoot = async (folder: string): Promise<boolean> => {
  if (await isThere(join(folder, "pnpm-workspace.yaml"))) return true;
  const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "{}");
  try {
    return packageKeys.parse(JSON.parse(text)).workspaces !== undefined;
  } catch {
    return false;
  }
};

/** The workspace that a folder without a lock file of its own lies in. */
const workspaceAbove = async (folder: string): Promise<string | undefined> => {
  const parent = dirname(folder);
  if (parent === folder) return undefined;
  return (await isWorkspaceRoot(parent)) ? parent : await workspaceAbove(parent);
};

/** Reads langgraph.json and package.json. Throws StartError or GraphLoadError for what no image can be made of. */
export const readImageProject = async (path: string): Promise<ImageProject> => {
  const file = resolve(path);
  await readGraphConfig(file); // says what is wrong with the rest
  const folder = dirname(file);
  const parsed = imageKeys.safeParse(JSON.parse(await readFile(file, "utf8")));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new StartError(`${file} is not valid: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}.`);
  }
  const text = await readFile(join(folder, "package.json"), "utf8").catch((error: Error) => {
    throw new StartError(`${join(folder, "package.json")} can't be read: ${error.message}.`, {
      cause: error,
    });
  });
  const packages = packageKeys.safeParse(JSON.parse(text));
  const { dependencies = {}, devDependencies = {} } = packages.success ? packages.data : {};
  if (!Object.hasOwn(dependencies, "threadloom") && Object.hasOwn(devDependencies, "threadloom"))
    throw new StartError(
      "threadloom stands among the devDependencies of package.json, which an image leaves out: npm install --save-prod threadloom.",
    );
  const locks: (typeof LOCK_FILES)[number][] = [];
  for (const lock of LOCK_FILES) if (await isThere(join(folder, lock[0]))) locks.push(lock);
  const isWorkspace = await isWorkspaceRoot(folder);
  const root = locks.length === 0 && !isWorkspace ? await workspaceAbove(folder) : undefined;
  if (root !== undefined)
    throw new StartError(
      `${folder} is a part of the workspace ${root}, which holds its lock file and the other packages: an image is made there. ` +
        `Put a langgraph.json into ${root} that names the same graphs, and npm install threadloom there.`,
    );
  const { node_version: nodeVersion, dockerfile_lines: lines, env } = parsed.data;
  return {
    configFile: basename(file),
    nodeVersion: nodeVersion ?? USUAL_NODE,
    dockerfileLines: lines ?? [],
    envFile: typeof env === "string" ? env : undefined,
    manager: locks[0]?.[1] ?? "npm",
    lockFile: locks[0]?.[0],
    isWorkspace,
    meaningless: Object.keys(parsed.data).filter((key) => MEANINGLESS.test(key)),
  };
};
