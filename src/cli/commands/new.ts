import { stat } from "node:fs/promises";
import { platform } from "node:os";
import { relative, resolve } from "node:path";
import { version } from "node:process";
import { Command, Option } from "commander";
import { StartError, UsageError } from "../../platform/domain/errors.ts";
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
  TEMPLATE_QUESTIONS,
  TEMPLATES,
  type Language,
  type Template,
} from "../new/templates.ts";
import { printable } from "../printable.ts";
import { EXIT_CODES_TEXT } from "../run-command.ts";
import type { CommandSurroundings, CreateCommand } from "./command.ts";

const EXAMPLES = `
Examples:
  $ threadloom new
  $ threadloom new my-agent --template approval --language javascript
  $ threadloom new my-agent --yes --package-manager pnpm
  $ threadloom new . --no-install

At a terminal it asks for missing options, unless you use --yes. It overwrites no file. The templates need no API key of a model:
  agent     an agent with tools
  approval  a person approves before something is done
  research  a plan, searches in parallel, a report
${EXIT_CODES_TEXT}`;

const USUAL_FOLDER = "my-agent";
const SECOND_MS = 1_000;
/** Without a terminal, a line says this often that the installation goes on. */
const STILL_INSTALLING_MS = 10_000;

/** Measured: docs/benchmarks.md. */
const RECOMMENDED_NODE = 24;

const nodeText = (): string =>
  Number.parseInt(version.slice(1)) < RECOMMENDED_NODE
    ? `This is Node ${version}. With Node ${RECOMMENDED_NODE} a run needs a fifth less CPU.\n`
    : "";

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

const installIn = async (
  folder: string,
  manager: PackageManager,
  { terminal, note, stopping }: CommandSurroundings,
): Promise<void> => {
  const { spinner } = await import("@clack/prompts");
  const wheel = terminal ? spinner({ indicator: "timer" }) : undefined;
  const startedAt = Date.now();
  const seconds = (): string => ((Date.now() - startedAt) / SECOND_MS).toFixed(0);
  const step = `Installing its packages with ${manager} (more than 200 MB)`;
  if (wheel === undefined) note(`${step} …\n`);
  else wheel.start(step);
  const reminder =
    wheel === undefined
      ? setInterval(() => note(`… still installing after ${seconds()} s\n`), STILL_INSTALLING_MS)
      : undefined;
  // After the start of the spinner, which would read Ctrl-C as a key and exit while the package manager continues.
  const signal = stopping();
  const failure = await install(manager, folder, signal);
  clearInterval(reminder);
  if (failure === undefined) {
    if (wheel === undefined) note(`Installed in ${seconds()} s.\n`);
    else wheel.stop("Its packages are installed");
    return;
  }
  if (signal.aborted)
    throw new StartError(
      `The project is in ${folder}, but its packages are not installed: '${manager} install' was stopped. Run it again there.`,
    );
  wheel?.error(`${manager} could not install its packages`);
  throw new StartError(
    `The project is in ${folder}, but '${manager} install' failed there:\n\n${failure}\n\n` +
      "Fix the error, and run it again there.",
  );
};

const quoted = (word: string): string =>
  /^[\w./\\][\w./\\-]*$/.test(word)
    ? word
    : platform() === "win32"
      ? `"${word}"`
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
  return `\nNext:\n\n${steps.map((step) => `  ${step}\n`).join("")}\n${question}\nRun the project's tests with: ${scriptCommand(manager, "test")}\n${nodeText()}`;
};

const run = async (
  given: string | undefined,
  flags: Flags,
  surroundings: CommandSurroundings,
): Promise<void> => {
  const { environment, write, canAsk } = surroundings;
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
  if (isWanted) await installIn(folder, packageManager, surroundings);
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
