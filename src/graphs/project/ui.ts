import { resolve } from "node:path";
import { z } from "zod";

/** Components of a generative user interface, as `ui` of langgraph.json names them. */
export interface UiEntry {
  /** A graph id mostly, or another name by which front ends ask for them. */
  name: string;
  /** Absolute path of the module whose default export is an object of React components. */
  file: string;
}

/** `ui` and `ui_config` of langgraph.json. */
export interface UiConfig {
  readonly entries: readonly UiEntry[];
  /** Packages that the page has already, beside React and the SDK's own. */
  readonly shared: readonly string[];
  /** The project's folder: that of langgraph.json. */
  readonly folder: string;
}

export const uiSchema = z
  .record(z.string().min(1), z.string().min(1), {
    error: 'must be an object like {"agent": "./src/ui.tsx"}',
  })
  .nullish();
export const uiConfigSchema = z.object({ shared: z.array(z.string().min(1)).nullish() }).nullish();

interface UiFields {
  ui?: z.output<typeof uiSchema>;
  ui_config?: z.output<typeof uiConfigSchema>;
  http?: { disable_ui?: boolean | null | undefined } | null | undefined;
}

/** No entries if the file names none, or if it says `http.disable_ui`. */
export const uiConfigOf = ({ ui, ui_config, http }: UiFields, folder: string): UiConfig => ({
  entries:
    http?.disable_ui === true
      ? []
      : Object.entries(ui ?? {}).map(([name, file]) => ({ name, file: resolve(folder, file) })),
  shared: ui_config?.shared ?? [],
  folder,
});
