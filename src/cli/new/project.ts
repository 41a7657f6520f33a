import { lstat, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { StartError, UsageError } from "../../platform/domain/errors.ts";
import { printable } from "../printable.ts";
import { langgraphJson, packageJson, packageNameOf, pnpmSettings, yarnSettings } from "./manifest.ts";
import { EXECUTE, scriptCommand, type PackageManager } from "./installing.ts";
import { ENDINGS, templateFiles, type Language, type Template } from "./templates.ts";

interface ProjectWish {
  folder: string;
  template: Template;
  language: Language;
  packageManager: PackageManager;
  threadloom: string;
}

const SCRIPTS = ["dev", "test", "start"];

const readmeOf = (text: string, name: string, { language, packageManager }: ProjectWish): string => {
  const widest = Math.max(...SCRIPTS.map((script) => scriptCommand(packageManager, script).length));
  return text
    .replaceAll("{{name}}", name)
    .replaceAll("{{ext}}", ENDINGS[language])
    .replaceAll("{{exec}}", EXECUTE[packageManager])
    .replace(/\{\{run (\w+)\}\}/g, (_, script: string) =>
      scriptCommand(packageManager, script).padEnd(widest),
    );
};

const SETTINGS: Partial<Record<PackageManager, readonly [name: string, content: string]>> = {
  pnpm: ["pnpm-workspace.yaml", pnpmSettings()],
  yarn: [".yarnrc.yml", yarnSettings()],
};

const filesOf = async (wish: ProjectWish): Promise<Map<string, string>> => {
  const name = packageNameOf(wish.folder);
  const files = await templateFiles(wish.template, wish.language);
  const facts = { ...wish, name };
  files.set("README.md", readmeOf(files.get("README.md") ?? "", name, wish));
  files.set("package.json", packageJson(facts));
  files.set("langgraph.json", langgraphJson(facts));
  const [settings, content] = SETTINGS[wish.packageManager] ?? ["", ""];
  // A workspace has these settings at its root.
  if (settings !== "" && !(await isAbove(wish.folder, settings))) files.set(settings, content);
  return files;
};

/** A link counts, even a broken one. */
const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

const isAbove = async (folder: string, name: string): Promise<boolean> => {
  const parent = dirname(folder);
  return parent !== folder && ((await exists(join(parent, name))) || (await isAbove(parent, name)));
};

/** @throws UsageError */
export const assertFolderName = (given: string): void => {
  // E.g. from an unset variable of a script.
  if (given.trim() === "")
    throw new UsageError("The folder's name is empty. Use '.' for the current folder.");
  if (printable(given) !== given)
    throw new UsageError("The folder's name has an invisible character. Choose another name.");
};

/** @throws UsageError */
export const assertRoomIn = async (folder: string): Promise<void> => {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isDirectory()) throw new UsageError(`${folder} is a file. Name a folder for the project.`);
  if (await exists(join(folder, "langgraph.json")))
    throw new UsageError(
      `${folder} has a langgraph.json, so it is a project already. 'threadloom dev' serves its graphs; ` +
        "'threadloom new <folder>' creates another project in its own folder.",
    );
};

/** @throws UsageError, before writing, if a file exists; StartError if writing fails */
export const writeProject = async (wish: ProjectWish): Promise<string[]> => {
  const { folder } = wish;
  await assertRoomIn(folder);
  const files = await filesOf(wish);
  const paths = [...files.keys()].sort();
  const inTheWay: string[] = [];
  for (const path of paths) if (await exists(join(folder, path))) inTheWay.push(path);
  if (inTheWay.length > 0) {
    const others = (await readdir(folder)).length;
    throw new UsageError(
      `${folder} is not empty (${others} entries), and these files would be overwritten: ${inTheWay.join(", ")}. ` +
        "Nothing was written; name another folder.",
    );
  }
  try {
    for (const path of paths) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), files.get(path) ?? "", { flag: "wx" });
    }
  } catch (error) {
    throw new StartError(`The project can't be written: ${(error as Error).message}.`, { cause: error });
  }
  return paths;
};
