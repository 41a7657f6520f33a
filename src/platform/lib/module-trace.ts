import { createRequire, register } from "node:module";
import { dirname, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";

/** What the hooks say: `parent` has imported `url`; without a parent, `url` is loaded. Plain URLs of files. */
interface Told {
  parent: string | undefined;
  url: string;
}

/** What the project's own code has loaded in this process. */
export interface LoadedModules {
  /** Absolute paths of the files of the project: none of packages, none of this server. */
  readonly files: readonly string[];
  /** What these files have imported of packages, in that order: a URL for `import`, a path for `require`. */
  readonly packages: readonly string[];
}

export interface ModuleTrace {
  loaded(): LoadedModules;
  /** Those of the files that one of `files` has loaded, over others, too, and `files` themselves. */
  reachedFrom(files: readonly string[]): ReadonlySet<string>;
  /** `require` reads the project's files anew from now on; `import` does so for each `?edition=` of a file. */
  forget(): void;
  /** Called when more has been loaded, e.g. by an `import()` of a run. */
  onMore(listener: () => void): void;
}

const OWN = new URL("../../", import.meta.url).href;
const OWN_FOLDER = fileURLToPath(OWN);
const PACKAGES = `${sep}node_modules${sep}`;
const require = createRequire(import.meta.url);

const isProjects = (file: string): boolean => !file.startsWith(OWN_FOLDER) && !file.includes(PACKAGES);

const fileOf = (url: string): string => fileURLToPath(url.replace(/[?#].*$/, ""));

/** The URL of an edition of a file: Node loads a module once for each URL, and the hooks hand the edition on to its imports. */
export const editionUrl = (file: string, edition: number | undefined): string => {
  const { href } = pathToFileURL(file);
  return edition === undefined ? href : `${href}?edition=${edition}`;
};

/**
 * Notes from now on which files of the project are loaded, and by which. It belongs to the process, as the loader of
 * TypeScript does, and is started after that: hooks that are registered last are asked first.
 */
export const traceModules = async (): Promise<ModuleTrace> => {
  await import("./typescript-loader.js");
  const { port1: told, port2: port } = new MessageChannel();
  register("./module-trace-hooks.js", import.meta.url, { data: { port, own: OWN }, transferList: [port] });
  /** File -> what it has imported, files and packages. */
  const imports = new Map<string, Set<string>>();
  const packages = new Set<string>();
  let readLoaded = (): void => undefined;

  const note = (file: string, imported: string): void => {
    const known = imports.get(file) ?? new Set();
    imports.set(file, known.add(imported));
  };
  const receive = ({ parent, url }: Told): void => {
    const file = fileOf(url);
    const isFile = isProjects(file);
    if (!isFile) packages.add(url);
    else if (!imports.has(file)) imports.set(file, new Set());
    if (isFile && parent !== undefined) note(fileOf(parent), file);
  };
  /** What is `require`d passes no hook of Node 20. */
  const readRequired = (): void => {
    for (const [file, module] of Object.entries(require.cache)) {
      if (module === undefined || !isProjects(file)) continue;
      if (!imports.has(file)) imports.set(file, new Set());
      for (const { filename } of module.children) {
        if (isProjects(filename)) note(file, filename);
        else if (!filename.startsWith(OWN_FOLDER)) packages.add(filename);
      }
    }
  };
  /** What was sent is here, though its event may not have been. */
  const readTold = (): void => {
    for (let next = receiveMessageOnPort(told); next !== undefined; next = receiveMessageOnPort(told))
      receive(next.message as Told);
  };
  told.on("message", (message: Told) => {
    receive(message);
    readLoaded();
  });
  told.unref();

  return {
    loaded() {
      readTold();
      readRequired();
      return { files: [...imports.keys()], packages: [...packages] };
    },
    reachedFrom(files) {
      readTold();
      readRequired();
      const reached = new Set<string>();
      const visit = (file: string): void => {
        if (reached.has(file)) return;
        reached.add(file);
        for (const imported of imports.get(file) ?? []) visit(imported);
      };
      files.forEach(visit);
      return reached;
    },
    forget() {
      // Their edges are kept until now, since they go with the cache.
      readRequired();
      for (const file of Object.keys(require.cache)) if (isProjects(file)) delete require.cache[file];
    },
    onMore: (listener) => void (readLoaded = listener),
  };
};

/**
 * Loads packages ahead, as `packages` of `loaded` names them. One that can't be loaded is left to the file that wants it, which is
 * told why.
 */
export const loadPackages = async (packages: readonly string[]): Promise<void> => {
  for (const name of packages) {
    try {
      if (name.startsWith("file:")) await import(name);
      else createRequire(dirname(name) + sep)(name);
    } catch {
      // See above.
    }
  }
};
