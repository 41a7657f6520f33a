import { existsSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import ts from "typescript";
import { packageFileOf } from "./origins.ts";

/** A file that somebody wrote has less; a larger one is generated, and holds no graph's types. */
const FILE_BYTES_AT_MOST = 4_000_000;

const DECLARATION = /\.d\.[cm]?ts$/;
const JAVASCRIPT = /\.([cm]?)jsx?$/;

/** For a project without a tsconfig.json, which its loader reads without one, too. */
const DEFAULTS: ts.CompilerOptions = {
  allowImportingTsExtensions: true,
  esModuleInterop: true,
  resolveJsonModule: true,
  jsx: ts.JsxEmit.Preserve,
};

/** Types are read, not checked, and nothing is written, whatever the project's own build does. */
const ALWAYS: ts.CompilerOptions = {
  strict: true,
  allowJs: true,
  noEmit: true,
  skipLibCheck: true,
  composite: false,
  incremental: false,
  declaration: false,
  tsBuildInfoFile: undefined,
};

export interface Project {
  program: ts.Program;
  /** The tsconfig.json and those that it extends. */
  configFiles: string[];
  /** False if a module was not found that a file of the project imports. */
  isComplete: boolean;
}

interface ProjectOptions {
  options: ts.CompilerOptions;
  declarations: string[];
  configFiles: string[];
}

const readOptions = (folder: string): ProjectOptions => {
  const configFile = ts.findConfigFile(folder, ts.sys.fileExists);
  if (configFile === undefined) return { options: DEFAULTS, declarations: [], configFiles: [] };
  const source = ts.readJsonConfigFile(configFile, ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonSourceFileConfigFileContent(source, ts.sys, dirname(configFile));
  return {
    options,
    // What a project declares for all of its files.
    declarations: fileNames.filter((name) => DECLARATION.test(name)),
    configFiles: [configFile, ...(source.extendedSourceFiles ?? [])],
  };
};

/** LangGraph's packages name their types in `exports`, which the older ways of looking up modules don't read. */
const READS_EXPORTS = new Set([
  ts.ModuleResolutionKind.Node16,
  ts.ModuleResolutionKind.NodeNext,
  ts.ModuleResolutionKind.Bundler,
]);

const completed = (options: ts.CompilerOptions): ts.CompilerOptions => ({
  ...options,
  ...ALWAYS,
  // LangGraph's types need what came with it, e.g. asynchronous iterators.
  target: Math.max(options.target ?? 0, ts.ScriptTarget.ES2022),
  ...(options.moduleResolution !== undefined && READS_EXPORTS.has(options.moduleResolution)
    ? {}
    : options.module !== undefined &&
        options.module >= ts.ModuleKind.Node16 &&
        options.module <= ts.ModuleKind.NodeNext &&
        options.moduleResolution === undefined
      ? {}
      : { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }),
});

/** The declarations beside a JavaScript file, if there are any. */
export const typedFile = (file: string): string => {
  const declarations = join(dirname(file), basename(file).replace(JAVASCRIPT, ".d.$1ts"));
  return JAVASCRIPT.test(file) && existsSync(declarations) ? declarations : file;
};

/**
 * Opens the files of graphs as one program, with the tsconfig.json of the folder or of one above it.
 * @param files absolute paths
 */
export const openProject = (folder: string, files: readonly string[]): Project => {
  const { options: given, declarations, configFiles } = readOptions(folder);
  const options = completed(given);
  let isComplete = true;
  const host = ts.createCompilerHost(options);
  const getSourceFile = host.getSourceFile.bind(host);
  const resolutions = ts.createModuleResolutionCache(folder, (name) => name, options);
  host.getCurrentDirectory = () => folder;
  host.getSourceFile = (name, ...rest) =>
    (statSync(name, { throwIfNoEntry: false })?.size ?? 0) > FILE_BYTES_AT_MOST
      ? undefined
      : getSourceFile(name, ...rest);
  host.resolveModuleNameLiterals = (literals, file, redirected, fileOptions, source) =>
    literals.map((literal) => {
      const mode = ts.getModeForUsageLocation(source, literal, fileOptions);
      const found = ts.resolveModuleName(
        literal.text,
        file,
        fileOptions,
        host,
        resolutions,
        redirected,
        mode,
      );
      if (found.resolvedModule === undefined && packageFileOf(file) === undefined) {
        // What other loaders take, e.g. a text, is there, though it has no types.
        isComplete &&= isBuiltin(literal.text) || existsSync(resolve(dirname(file), literal.text));
      }
      return found;
    });
  const rootNames = [...new Set([...files, ...declarations])];
  return { program: ts.createProgram({ rootNames, options, host }), configFiles, isComplete };
};
