import { createRequire, register } from "node:module";
import { sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";

/** Without a parent, `url` is being loaded. */
interface LoadedModule {
  parent: string | undefined;
  url: string;
}

const OWN = new URL("../../", import.meta.url).href;
const OWN_FOLDER = fileURLToPath(OWN);
const PACKAGES = `${sep}node_modules${sep}`;
const require = createRequire(import.meta.url);

const isProjects = (file: string): boolean => !file.startsWith(OWN_FOLDER) && !file.includes(PACKAGES);

const fileOf = (url: string): string => fileURLToPath(url.replace(/[?#].*$/, ""));

/** Node loads a module once per URL. The hooks pass the edition on to the file's imports. */
export const editionUrl = (file: string, edition: number | undefined): string => {
  const { href } = pathToFileURL(file);
  return edition === undefined ? href : `${href}?edition=${edition}`;
};

/** Registers after the TypeScript loader, because Node calls the last registered hooks first. */
export const traceModules = async () => {
  await import("./typescript-loader.js");
  const { port1: messages, port2: port } = new MessageChannel();
  register("./module-trace-hooks.js", import.meta.url, { data: { port, own: OWN }, transferList: [port] });
  const imports = new Map<string, Set<string>>();
  let readLoaded = (): void => undefined;

  const note = (file: string, imported: string): void => {
    const known = imports.get(file) ?? new Set();
    imports.set(file, known.add(imported));
  };
  const receive = ({ parent, url }: LoadedModule): void => {
    const file = fileOf(url);
    if (!isProjects(file)) return;
    if (!imports.has(file)) imports.set(file, new Set());
    if (parent !== undefined) note(fileOf(parent), file);
  };
  /** Node 20 calls no hook for a `require`d module. */
  const readRequired = (): void => {
    for (const [file, module] of Object.entries(require.cache)) {
      if (module === undefined || !isProjects(file)) continue;
      if (!imports.has(file)) imports.set(file, new Set());
      for (const { filename } of module.children) if (isProjects(filename)) note(file, filename);
    }
  };
  /** Reads messages that have arrived before their event. */
  const readMessages = (): void => {
    for (let next = receiveMessageOnPort(messages); next !== undefined; next = receiveMessageOnPort(messages))
      receive(next.message as LoadedModule);
  };
  messages.on("message", (message: LoadedModule) => {
    receive(message);
    readLoaded();
  });
  messages.unref();

  return {
    files(): readonly string[] {
      readMessages();
      readRequired();
      return [...imports.keys()];
    },
    reachedFrom(files: readonly string[]): ReadonlySet<string> {
      readMessages();
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
    /** After this call `require` reads the project's files again. `import` does so for each new `?edition=`. */
    forget(): void {
      // Clearing the cache removes these edges, so record them before.
      readRequired();
      for (const file of Object.keys(require.cache)) if (isProjects(file)) delete require.cache[file];
    },
    onMore: (listener: () => void): void => void (readLoaded = listener),
  };
};

export type ModuleTrace = Awaited<ReturnType<typeof traceModules>>;
