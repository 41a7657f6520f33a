import { resolve } from "node:path";

/** An export of a module of the project's, as langgraph.json names it: `./app.ts:app`. */
export interface NamedExport {
  /** Absolute path of the module. */
  readonly file: string;
  readonly exportName: string;
}

/** `file:export`; without an export it is `default`. `folder`: what paths are relative to. */
export const exportOf = (reference: string, folder: string): NamedExport => {
  const colon = reference.lastIndexOf(":");
  // Behind a drive letter of Windows there is a path.
  const isNamed = colon > 1 && !/[/\\]/.test(reference.slice(colon));
  return isNamed
    ? {
        file: resolve(folder, reference.slice(0, colon)),
        exportName: reference.slice(colon + 1) || "default",
      }
    : { file: resolve(folder, reference), exportName: "default" };
};
