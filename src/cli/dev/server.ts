/** `start` with reloading graphs. Uses environment, signals and exit, as serve.ts does. */
import { dirname, relative, resolve } from "node:path";
import { parseConfig } from "../../platform/config/config.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import {
  graphConfigFileOf,
  mergeEnvironments,
  type Environment,
  type Flags,
} from "../../platform/config/resolve.ts";
import { NotRenewed } from "../../engine/executors/process/renewal.ts";
import { traceModules, type ModuleTrace } from "../../platform/lib/module-trace.ts";
import { GraphLoadError, readGraphConfig, type GraphConfig } from "../../graphs/project/langgraph-json.ts";
import type { RunningServer } from "../start/in-development.ts";
import { failureText, serve } from "../start/serve.ts";
import { needsNewServer, ownFilesOf, type Basis } from "./changes.ts";
import { DEFAULTS, START_AGAIN, type Ready } from "./launch.ts";
import { createFileWatch, type FileWatch } from "./file-watch.ts";
import { exitCodeOf } from "../run-command.ts";
import { loadElsewhere } from "../doctor/loading.ts";
import { missingFiles } from "./missing-files.ts";
import { createReloadLog, type ReloadLog } from "./reload-log.ts";
import { tsconfigFault, tsconfigFilesOf } from "./tsconfig-files.ts";

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

const tsconfigFile = (): string | undefined => process.env["TSX_TSCONFIG_PATH"] || undefined;

const tsconfigFiles = (file = tsconfigFile()): string[] => (file === undefined ? [] : tsconfigFilesOf(file));

class Renewing {
  #basis: Basis;
  #trials = 0;
  #wasBroken = false;
  readonly #graphFiles = new Set<string>();
  /** The TypeScript loader reads these files once. */
  #tsconfigFiles = tsconfigFiles();
  #missing: readonly string[] = [];
  #unapplied: readonly string[] = [];

  constructor(
    private readonly running: RunningServer,
    private readonly surroundings: Surroundings,
    private readonly watch: FileWatch,
    private readonly reloadLog: ReloadLog,
  ) {
    this.#basis = running;
  }

  get #project() {
    return this.#basis.project;
  }

  get #settings(): string[] {
    const { path, environmentFile } = this.#project;
    return [path, ...(environmentFile === undefined ? [] : [environmentFile]), ...this.#tsconfigFiles];
  }

  async watchFiles(since: number): Promise<void> {
    const { trace } = this.surroundings;
    const files = [
      ...this.#settings,
      ...this.#project.entries.map(({ file }) => file),
      ...ownFilesOf(this.#project),
      ...trace.loaded().files,
      ...this.#graphFiles,
      ...this.#missing,
    ];
    await this.watch.set(files, since);
  }

  addFiles(files: readonly string[]): void {
    for (const file of files) this.#graphFiles.add(file);
  }

  /** Tests whether a restart would succeed. */
  async #assertLoadable({ auth, http }: GraphConfig): Promise<void> {
    const { createModuleLoader } = await import("../../graphs/modules.ts");
    this.surroundings.trace.forget();
    this.#trials += 1;
    for (const [subject, own] of [
      ["auth.path", auth],
      ["http.app", http.app],
    ] as const) {
      if (own === undefined) continue;
      const entry = {
        id: subject,
        file: own.file,
        exportName: own.exportName,
        description: undefined,
        subject,
      };
      // Negative, because the server's graphs have positive editions.
      const loader = await createModuleLoader([entry], -this.#trials);
      await loader.load(entry);
    }
  }

  /** In another process: the TypeScript loader reads tsconfig.json only once per process. */
  async #assertLoadableElsewhere({ path, auth, http }: GraphConfig): Promise<void> {
    const parts = [
      "graphs" as const,
      ...(auth === undefined ? [] : ["auth" as const]),
      ...(http.app === undefined ? [] : ["http.app" as const]),
    ];
    for (const part of parts) {
      const request = { part, configPath: path, projectKeys: this.#basis.config.projectKeys };
      const answer = await loadElsewhere(request, process.env, LOADING_MS);
      if ("failure" in answer) throw new NotRenewed(answer.failure);
    }
  }

  async #apply(files: readonly string[]): Promise<"renewed" | "restarts"> {
    const { path, environmentFile } = this.#project;
    const { trace, given } = this.surroundings;
    const own = trace.reachedFrom(ownFilesOf(this.#project));
    if (files.some((file) => this.#tsconfigFiles.includes(file))) {
      await this.#assertLoadableElsewhere(this.#project);
      return "restarts";
    }
    let isWhole = false;
    if (files.some((file) => file === path || file === environmentFile)) {
      const now = await readBasis(this.surroundings);
      if (needsNewServer(this.#basis, now)) {
        await this.#assertLoadable(now.project);
        return "restarts";
      }
      setEnvironment(given, this.#basis, now);
      this.#basis = now;
      isWhole = true;
    }
    if (files.some((file) => own.has(file))) {
      await this.#assertLoadable(this.#project);
      return "restarts";
    }
    await this.running.server.renew({ isWhole });
    return "renewed";
  }

  async changed(written: readonly string[]): Promise<void> {
    const files = [...new Set([...this.#unapplied, ...written])];
    const startedAt = Date.now();
    const names = namesOf(written, dirname(this.#project.path));
    const before = this.running.server.graphs.join();
    try {
      const outcome = await this.#apply(files);
      if (this.running.isStopping()) return;
      if (outcome === "restarts") {
        this.reloadLog.restarts(names);
        this.running.stopForNext(START_AGAIN);
        return;
      }
      this.#missing = [];
      this.#unapplied = [];
      const graphs = this.running.server.graphs;
      this.reloadLog.renewed({
        files: names,
        ms: Date.now() - startedAt,
        graphs: graphs.join() === before ? undefined : graphs,
        wasBroken: this.#wasBroken,
      });
      this.#wasBroken = false;
    } catch (error) {
      if (this.running.isStopping()) return;
      const message = error instanceof NotRenewed ? error.message : failureText(error);
      this.#missing = await missingFiles(message, tsconfigFile());
      this.#tsconfigFiles = [...new Set([...this.#tsconfigFiles, ...tsconfigFiles()])];
      this.#unapplied = files;
      this.#wasBroken = true;
      this.reloadLog.broken(names, message);
    }
    this.watch.countNeighbours(this.#wasBroken);
    await this.watchFiles(startedAt);
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
  const watch = createFileWatch({ onChange: async () => process.exit(START_AGAIN) });
  const project = await readGraphConfig(configFile).catch(() => undefined);
  watch.countNeighbours(true);
  const files = [
    resolve(configFile),
    ...(project?.environmentFile === undefined ? [] : [project.environmentFile]),
    ...(project === undefined ? [] : [...project.entries.map(({ file }) => file), ...ownFilesOf(project)]),
    ...trace.loaded().files,
    ...tsconfigFiles(),
    ...(await missingFiles(text, tsconfigFile())),
  ];
  await watch.set(files, since);
  // Watchers alone do not keep the process alive.
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
  const fault = await tsconfigFault(tsconfigFile());
  if (fault !== undefined) process.stderr.write(`threadloom dev: TypeScript may not load: ${fault}\n`);
  let renewing: Renewing | undefined;
  const early = new Set<string>();
  const watch = createFileWatch({ onChange: async (files) => await renewing?.changed(files) });
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
      const reloadLog = createReloadLog(running.config.logFormat === "pretty", running.logger, (text) => {
        process.stdout.write(text);
      });
      renewing = new Renewing(running, surroundings, watch, reloadLog);
      renewing.addFiles([...early]);
      void renewing.watchFiles(startedAt).then(() => reloadLog.watching(configFile));
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
