import { existsSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import ts from "typescript";
import { packageFileOf } from "./cache.ts";

/** A larger file is generated, and has no graph's types. */
const FILE_BYTES_AT_MOST = 4_000_000;

const DECLARATION = /\.d\.[cm]?ts$/;
const JAVASCRIPT = /\.([cm]?)jsx?$/;

/** For a project without a tsconfig.json. */
const DEFAULTS: ts.CompilerOptions = {
  allowImportingTsExtensions: true,
  esModuleInterop: true,
  resolveJsonModule: true,
  jsx: ts.JsxEmit.Preserve,
};

/** Overrides the project's build: types are read but not checked, and nothing is written. */
const ALWAYS: ts.CompilerOptions = {
  strict: true,
  allowJs: true,
  noEmit: true,
  skipLibCheck: true,
  composite: false,
  incremental: false,
  declaration: false,
  tsBuildInfoFile: undefined,
  // LangGraph's packages need `exports`, which older resolution modes ignore.
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
};

const readOptions = (folder: string) => {
  const configFile = ts.findConfigFile(folder, ts.sys.fileExists);
  if (configFile === undefined) return { options: DEFAULTS, declarations: [], configFiles: [] };
  const source = ts.readJsonConfigFile(configFile, ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonSourceFileConfigFileContent(source, ts.sys, dirname(configFile));
  return {
    options,
    // Global declarations of the project.
    declarations: fileNames.filter((name) => DECLARATION.test(name)),
    configFiles: [configFile, ...(source.extendedSourceFiles ?? [])],
  };
};

/** The declarations beside a JavaScript file, or the file itself. */
export const typedFile = (file: string): string => {
  const declarations = join(dirname(file), basename(file).replace(JAVASCRIPT, ".d.$1ts"));
  return JAVASCRIPT.test(file) && existsSync(declarations) ? declarations : file;
};

/**
 * Uses the nearest tsconfig.json, upward. `isComplete`: false if a file of the project imports a missing module.
 * @param files absolute paths
 */
export const openProject = (folder: string, files: readonly string[]) => {
  const { options: given, declarations, configFiles } = readOptions(folder);
  // LangGraph's types need at least this target, e.g. async iterators.
  const target = Math.max(given.target ?? 0, ts.ScriptTarget.ES2022);
  const options = { ...given, ...ALWAYS, target };
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
        // Other loaders' files, e.g. texts, exist but have no types.
        isComplete &&= isBuiltin(literal.text) || existsSync(resolve(dirname(file), literal.text));
      }
      return found;
    });
  const rootNames = [...new Set([...files, ...declarations])];
  return { program: ts.createProgram({ rootNames, options, host }), configFiles, isComplete };
};
