import { resolve } from "node:path";

/** An export in langgraph.json, e.g. `./app.ts:app`. */
export interface NamedExport {
  /** Absolute. */
  readonly file: string;
  readonly exportName: string;
}

export const exportOf = (reference: string, folder: string): NamedExport => {
  const colon = reference.lastIndexOf(":");
  // A path follows a Windows drive letter.
  const isNamed = colon > 1 && !/[/\\]/.test(reference.slice(colon));
  return isNamed
    ? {
        file: resolve(folder, reference.slice(0, colon)),
        exportName: reference.slice(colon + 1) || "default",
      }
    : { file: resolve(folder, reference), exportName: "default" };
};
