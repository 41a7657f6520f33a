import { stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { Command, Option } from "commander";
import { UsageError } from "../../platform/domain/errors.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import {
  findPackageManager,
  install,
  PACKAGE_MANAGERS,
  scriptCommand,
  type PackageManager,
} from "../new/installing.ts";
import { assertFolderName, assertRoomIn, writeProject } from "../new/project.ts";
import {
  LANGUAGE_NAMES,
  LANGUAGES,
  TEMPLATE_HINTS,
  TEMPLATE_QUESTIONS,
  TEMPLATES,
  type Language,
  type Template,
} from "../new/templates.ts";
import { printable } from "../printable.ts";
import { EXIT_CODES_TEXT } from "../run-command.ts";
import type { CommandSurroundings, CreateCommand } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom new
  $ threadloom new my-agent --template approval --language javascript
  $ threadloom new my-agent --yes --package-manager pnpm
  $ threadloom new . --no-install

At a terminal it asks for missing options, unless you use --yes. It overwrites no file. The templates need no API key of a model:
${TEMPLATES.map((template) => `  ${template.padEnd(10)}${TEMPLATE_HINTS[template]}\n`).join("")}${EXIT_CODES_TEXT}`;

const USUAL_FOLDER = "my-agent";
interface Flags {
  template?: Template;
  language?: Language;
  install: boolean;
  packageManager?: PackageManager;
  threadloom?: string;
  yes?: true;
}

const dependencyOn = async (given: string | undefined, folder: string): Promise<string> => {
  if (given === undefined) return `^${serverVersion()}`;
  const isPath = (await stat(given).catch(() => undefined)) !== undefined;
  return isPath ? `file:${relative(folder, resolve(given)).replaceAll("\\", "/")}` : given;
};

const quoted = (word: string): string =>
  /^[\w./\\][\w./\\-]*$/.test(word)
    ? word
    : `${word.startsWith("-") ? "./" : ""}'${word.replaceAll("'", String.raw`'\''`)}'`;

const stepsText = (
  folder: string,
  template: Template,
  manager: PackageManager,
  isInstalled: boolean,
): string => {
  const here = relative(resolve("."), folder);
  const steps = [
    ...(here === "" ? [] : [`cd ${quoted(here)}`]),
    ...(isInstalled ? [] : [`${manager} install`]),
    scriptCommand(manager, "dev"),
  ];
  const question = `Then ask the graph in the console, which opens by itself: ${TEMPLATE_QUESTIONS[template]}`;
  return `\nNext:\n\n${steps.map((step) => `  ${step}\n`).join("")}\n${question}\nRun the project's tests with: ${scriptCommand(manager, "test")}\n`;
};

const run = async (
  given: string | undefined,
  flags: Flags,
  { environment, write, note, canAsk, stopping }: CommandSurroundings,
): Promise<void> => {
  const asks = canAsk && flags.yes !== true;
  if (given === undefined && !asks && flags.yes !== true)
    throw new UsageError(
      `Name a folder, e.g. 'threadloom new ${USUAL_FOLDER}', or use --yes to take this name.`,
    );
  if (given !== undefined) assertFolderName(given);
  if (flags.threadloom?.trim() === "")
    throw new UsageError("--threadloom is empty. Give a version, a package file, or a folder.");
  // A user inside a project may have forgotten to name a folder.
  if (given === undefined) await assertRoomIn(resolve("."));
  const questions = asks ? await import("../new/questions.ts") : undefined;
  const folder = resolve(given ?? (await questions?.askFolder(USUAL_FOLDER)) ?? USUAL_FOLDER);
  await assertRoomIn(folder);
  const template = flags.template ?? (await questions?.askTemplate()) ?? "agent";
  const language = flags.language ?? (await questions?.askLanguage()) ?? "typescript";
  const packageManager =
    flags.packageManager ?? (await findPackageManager(environment["npm_config_user_agent"], folder));
  const isWanted = flags.install && ((await questions?.askInstall(packageManager)) ?? true);
  const threadloom = await dependencyOn(flags.threadloom, folder);
  const files = await writeProject({ folder, template, language, packageManager, threadloom });
  write(
    `Made ${printable(folder)}: ${files.length} files, the template '${template}' in ${LANGUAGE_NAMES[language]}.\n`,
  );
  if (isWanted) {
    note(`Installing its packages with ${packageManager} (more than 200 MB) …\n`);
    // A prompt would read Ctrl-C as a key, so the signals are asked for after the last one.
    await install(packageManager, folder, stopping());
  }
  write(stepsText(folder, template, packageManager, isWanted));
};

export const create: CreateCommand = (surroundings) =>
  new Command("new")
    .description("Creates a project with a working graph and its test.")
    .argument("[folder]", "the folder to create; '.' is the current folder")
    .addOption(new Option("--template <name>", "the template (default: agent)").choices(TEMPLATES))
    .addOption(new Option("--language <name>", "the language (default: typescript)").choices(LANGUAGES))
    .option("--no-install", "do not install its packages")
    .addOption(
      new Option(
        "--package-manager <name>",
        "the package manager (default: the one that runs this command, else npm)",
      ).choices(PACKAGE_MANAGERS),
    )
    .option("--threadloom <version>", "threadloom's version, or a package file or folder")
    .option("-y, --yes", "ask nothing")
    .addHelpText("after", EXAMPLES)
    .action((folder: string | undefined, flags: Flags) => run(folder, flags, surroundings));
