import { resolve } from "node:path";
import { z } from "zod";

/** A component of `ui` in langgraph.json. */
export interface UiEntry {
  /** Usually a graph id. */
  name: string;
  /** Absolute. The default export is an object of React components. */
  file: string;
}

export interface UiConfig {
  readonly entries: readonly UiEntry[];
  /** Packages that the page provides, besides React and the SDK. */
  readonly shared: readonly string[];
  /** The folder of langgraph.json. */
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

/** No entries with `http.disable_ui`. */
export const uiConfigOf = ({ ui, ui_config, http }: UiFields, folder: string): UiConfig => ({
  entries:
    http?.disable_ui === true
      ? []
      : Object.entries(ui ?? {}).map(([name, file]) => ({ name, file: resolve(folder, file) })),
  shared: ui_config?.shared ?? [],
  folder,
});
