/** `start` with reloading graphs. Uses environment, signals and exit, as serve.ts does. */
import { dirname, relative, resolve } from "node:path";
import { parseConfig, type Config } from "../../platform/config/config.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import {
  graphConfigFileOf,
  mergeEnvironments,
  type Environment,
  type Flags,
} from "../../platform/config/resolve.ts";
import { NotRenewed } from "../../engine/executors/process/pool.ts";
import { traceModules, type ModuleTrace } from "../../platform/lib/module-trace.ts";
import { GraphLoadError, readGraphConfig, type GraphConfig } from "../../graphs/project/langgraph-json.ts";
import type { RunningServer } from "../start/in-development.ts";
import { failureText, serve } from "../start/serve.ts";
import { needsNewServer, ownFilesOf, type Basis } from "./changes.ts";
import { DEFAULTS, START_AGAIN, type Ready } from "./launch.ts";
import { FileWatch } from "./file-watch.ts";
import { exitCodeOf } from "../run-command.ts";
import { loadElsewhere } from "../doctor/loading.ts";

/** `start` removes this variable from the environment, so a reload must not add it again. */
const KEPT_FROM_GRAPHS = "LANGGRAPH_AES_KEY";
const FILES_NAMED = 3;
const LOADING_MS = 120_000;

interface Surroundings {
  flags: Flags;
  /** The environment without the additions of langgraph.json. */
  given: Environment;
  configFile: string;
  trace: ModuleTrace;
}

const namesOf = (files: readonly string[], folder: string): string => {
  const names = files.slice(0, FILES_NAMED).map((file) => relative(folder, file));
  return [...names, ...(files.length > FILES_NAMED ? [`${files.length - FILES_NAMED} more`] : [])].join(", ");
};

const readBasis = async ({ flags, given, configFile }: Surroundings): Promise<Basis> => {
  const project = await readGraphConfig(configFile, projectKeysIn(given));
  const environment = mergeEnvironments(DEFAULTS, project.environment, given);
  return { config: parseConfig(flags, environment, { terminal: process.stdout.isTTY === true }), project };
};

const setEnvironment = (given: Environment, before: Basis, now: Basis): void => {
  for (const name of Object.keys(before.project.environment))
    if ((given[name] ?? "") === "") delete process.env[name];
  const shown = Object.entries(now.project.environment).filter(([name]) => name !== KEPT_FROM_GRAPHS);
  Object.assign(process.env, mergeEnvironments(Object.fromEntries(shown), process.env));
};

const tsconfigFiles = (): string[] => {
  const file = process.env["TSX_TSCONFIG_PATH"] ?? "";
  return file === "" ? [] : [resolve(file)];
};

/** The files that `dev` watches before any graph is loaded. */
const ownFiles = (project: GraphConfig): string[] => [
  project.path,
  ...(project.environmentFile === undefined ? [] : [project.environmentFile]),
  ...tsconfigFiles(),
  ...project.entries.map(({ file }) => file),
  ...ownFilesOf(project),
];

/** Tests whether a restart would succeed, in another process: this one keeps the modules that it has loaded. */
const assertLoadable = async (
  { path, auth, http, environment }: GraphConfig,
  { given, config }: { given: Environment; config: Config },
  parts: readonly ("graphs" | "auth" | "http.app")[],
): Promise<void> => {
  for (const part of parts) {
    if ((part === "auth" && auth === undefined) || (part === "http.app" && http.app === undefined)) continue;
    const request = { part, configPath: path, projectKeys: config.projectKeys };
    const answer = await loadElsewhere(request, mergeEnvironments(environment, given), LOADING_MS);
    if ("failure" in answer) throw new NotRenewed(answer.failure);
  }
};

class Renewing {
  #basis: Basis;
  /** The message of the last failure; undefined if the newest code runs. */
  #failure: string | undefined;
  readonly #graphFiles = new Set<string>();
  #unapplied: readonly string[] = [];

  constructor(
    private readonly running: RunningServer,
    private readonly surroundings: Surroundings,
    private readonly watch: FileWatch,
  ) {
    this.#basis = running;
  }

  async watchFiles(since: number): Promise<void> {
    const { project } = this.#basis;
    const files = [...ownFiles(project), ...this.surroundings.trace.files(), ...this.#graphFiles];
    await this.watch.set(files, since, this.#failure === undefined ? undefined : dirname(project.path));
  }

  addFiles(files: readonly string[]): void {
    for (const file of files) this.#graphFiles.add(file);
  }

  async #apply(files: readonly string[]): Promise<"renewed" | "restarts"> {
    const { project, config } = this.#basis;
    const { trace, given } = this.surroundings;
    const own = trace.reachedFrom(ownFilesOf(project));
    if (files.some((file) => tsconfigFiles().includes(file))) {
      await assertLoadable(project, { given, config }, ["graphs", "auth", "http.app"]);
      return "restarts";
    }
    if (files.some((file) => file === project.path || file === project.environmentFile)) {
      const now = await readBasis(this.surroundings);
      if (needsNewServer(this.#basis, now)) {
        await assertLoadable(now.project, { given, config: now.config }, ["auth", "http.app"]);
        return "restarts";
      }
      setEnvironment(given, this.#basis, now);
      this.#basis = now;
    }
    if (files.some((file) => own.has(file))) {
      await assertLoadable(project, { given, config }, ["auth", "http.app"]);
      return "restarts";
    }
    await this.running.server.renew();
    return "renewed";
  }

  async changed(written: readonly string[]): Promise<void> {
    const { running } = this;
    const { server, logger } = running;
    const files = [...new Set([...this.#unapplied, ...written])];
    const startedAt = Date.now();
    const names = namesOf(written, dirname(this.#basis.project.path));
    const before = server.graphs.join();
    try {
      const outcome = await this.#apply(files);
      if (running.isStopping()) return;
      if (outcome === "restarts") {
        logger.info(`restarting after a change of ${names}`);
        running.stopForNext(START_AGAIN);
        return;
      }
      this.#unapplied = [];
      const works = this.#failure === undefined ? "" : ": it works again";
      const graphs = server.graphs.join() === before ? "" : `; the graphs are ${server.graphs.join(", ")}`;
      logger.info(`reloaded in ${Date.now() - startedAt} ms after a change of ${names}${works}${graphs}`);
      this.#failure = undefined;
    } catch (error) {
      if (running.isStopping()) return;
      const message = error instanceof NotRenewed ? error.message : failureText(error);
      this.#unapplied = files;
      this.#reportFailure(`not reloaded after a change of ${names}; the code before it goes on`, message);
      this.#failure = message;
    }
    await this.watchFiles(startedAt);
  }

  #reportFailure(text: string, reason: string): void {
    const { logger, config } = this.running;
    if (config.logFormat !== "pretty") return logger.error({ reason }, text);
    if (reason === this.#failure) return logger.error(`${text} (as before)`);
    logger.error(text);
    process.stdout.write(`\n${reason.replace(/^/gm, "  ")}\n\n`);
  }
}

/** Waits for a change that may repair the start. */
const startAgainLater = async (error: unknown, surroundings: Surroundings, since: number): Promise<void> => {
  const { trace, configFile } = surroundings;
  const text = failureText(error);
  process.stderr.write(`threadloom dev: ${text}\n`);
  if (!(error instanceof GraphLoadError)) return process.exit(exitCodeOf(error));
  process.stderr.write("threadloom dev: waiting for a change of these files; Ctrl-C ends it\n");
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", () => process.kill(process.pid, "SIGTERM"));
  const watch = new FileWatch(async () => process.exit(START_AGAIN));
  const project = await readGraphConfig(configFile).catch(() => undefined);
  const files = project === undefined ? [resolve(configFile)] : ownFiles(project);
  await watch.set([...files, ...trace.files()], since, dirname(resolve(configFile)));
  // The watch alone does not keep the process alive.
  setInterval(() => undefined, 60_000);
};

/** Runs until a signal, or until it exits with `START_AGAIN`. */
export const serveInDevelopment = async (flags: Flags): Promise<void> => {
  const startedAt = Date.now();
  process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
  const given = { ...process.env };
  const trace = await traceModules();
  const configFile = graphConfigFileOf(given, flags.graphConfigFile);
  const surroundings: Surroundings = { flags, given, configFile, trace };
  let renewing: Renewing | undefined;
  const early = new Set<string>();
  const watch = new FileWatch(async (files) => await renewing?.changed(files));
  let isDue = false;
  const onFiles = (files: readonly string[]): void => {
    for (const file of files) early.add(file);
    renewing?.addFiles(files);
    if (isDue || renewing === undefined) return;
    isDue = true;
    const since = Date.now();
    setImmediate(() => {
      isDue = false;
      void renewing?.watchFiles(since);
    });
  };
  await serve(flags, {
    defaults: DEFAULTS,
    parts: { trace, onFiles },
    started(running) {
      const ready: Ready = { kind: "ready", consoleAddress: running.consoleAddress };
      process.send?.(ready);
      renewing = new Renewing(running, surroundings, watch);
      renewing.addFiles([...early]);
      const text = `watching the graphs of ${configFile}; Ctrl-C ends it`;
      void renewing.watchFiles(startedAt).then(() => running.logger.info(text));
    },
    failed(error) {
      watch.close();
      void startAgainLater(error, surroundings, startedAt);
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
        process.removeAllListeners(signal);
        process.on(signal, () => process.exit(0));
      }
    },
  });
};
