import { dirname } from "node:path";
import { version } from "node:process";
import { Command, InvalidArgumentError } from "commander";
import { parseConfig, type Config } from "../../platform/config/config.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import { graphConfigFileOf, mergeEnvironments, type Environment } from "../../platform/config/resolve.ts";
import { StartError, UsageError } from "../../platform/domain/errors.ts";
import { answeringJson, commandLogger, jsonLine } from "../flags.ts";
import { serverVersion } from "../../platform/lib/package-versions.ts";
import { checkAccess, checkPort, checkSessions, checkText, fail, ok, type Check } from "../doctor/checks.ts";
import { checkDatabase } from "../doctor/database.ts";
import { checkParts, checkProject, checkTypescript, checkVersions } from "../doctor/project.ts";
import { databasePlaceOf, onDatabase, type DatabaseFlags, type DatabasePlace } from "../own-database.ts";
import { NotDoneError } from "../run-command.ts";
import type { CommandSurroundings, CreateCommand } from "../command.ts";

const EXAMPLES = `
Examples:
  $ threadloom doctor
  $ threadloom doctor --port 8124 --host 0.0.0.0
  $ threadloom doctor --json

It changes nothing. INFO: no problem. WARN: the server starts, but read the advice. FAIL: the server refuses to start, or works incorrectly.
Exit codes: 0 done, 1 something fails, 2 wrong usage.`;

interface Flags extends DatabaseFlags {
  host?: string;
  port?: string;
  timeout: number;
}

const seconds = (text: string): number => {
  const number = Number(text);
  if (number >= 1 && number <= 600) return number;
  throw new InvalidArgumentError("Use a number of seconds from 1 to 600.");
};

async function* checksOf(
  flags: Flags,
  given: Environment,
  { note }: CommandSurroundings,
): AsyncGenerator<Check> {
  yield ok("Versions", `Threadloom ${serverVersion()}, Node.js ${version.slice(1)}`);
  const configPath = graphConfigFileOf(given, flags.config);
  const keys = projectKeysIn(given);
  const project = yield* checkProject(configPath, keys);
  const environment = mergeEnvironments(project?.environment ?? {}, given);
  if (project !== undefined) {
    yield* await checkVersions(dirname(project.path));
    yield* await checkTypescript(project);
    yield* checkParts(project, keys, environment, flags.timeout * 1_000);
  }
  let place: DatabasePlace;
  let config: Config;
  try {
    place = databasePlaceOf(flags, environment);
    const { host, port, databaseUrl } = flags;
    config = parseConfig({ graphConfigFile: configPath, host, port, databaseUrl }, place.environment);
  } catch (error) {
    if (!(error instanceof StartError) || error instanceof UsageError) throw error;
    yield fail("Options", error.message, "Set it right, in the environment or as a flag.");
    return;
  }
  const hasStoredKeys = yield* checkDatabase(place, commandLogger("error", note));
  if (hasStoredKeys !== undefined && config.databaseUrl !== undefined)
    yield await checkSessions(config.databaseUrl, config);
  yield await checkAccess(config, {
    hasStoredKeys: hasStoredKeys === true,
    hasAuth: project?.auth !== undefined,
  });
  yield await checkPort(config);
}

export const create: CreateCommand = (surroundings) =>
  answeringJson(onDatabase(new Command("doctor")))
    .description("Checks everything that a start needs, and says what to fix.")
    .option("--host <address>", "the address to listen on")
    .option("--port <number>", "the port to listen on")
    .option("--timeout <seconds>", "for loading the graphs, and as long for auth and http.app", seconds, 60)
    .addHelpText("after", EXAMPLES)
    .action(async (flags: Flags) => {
      const { write, environment } = surroundings;
      const checks: Check[] = [];
      for await (const check of checksOf(flags, environment, surroundings)) {
        checks.push(check);
        if (!flags.json) write(checkText(check));
      }
      const count = (level: Check["level"]): number => checks.filter((check) => check.level === level).length;
      const [failed, warned] = [count("fail"), count("warn")];
      if (flags.json) write(jsonLine({ checks, failed, warned }));
      else write(`\n${checks.length} checks, ${failed} failed, ${warned} warned.\n`);
      if (failed > 0) throw new NotDoneError();
    });
