import { bundleUi, UiBuildError, type UiBundle, type UiFile } from "./bundle.ts";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { uiFileNotFound, uiNotFound } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { UiConfig } from "../../graphs/project/ui.ts";

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const attribute = (text: string): string =>
  `"${text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? "")}"`;

/** JSON that is also JavaScript in old engines. */
const literal = (text: string): string =>
  JSON.stringify(text).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");

/** The loader replaces the first occurrence by an element's id. */
const SHADOW_ROOT_ID = "{{shadowRootId}}";

/** `crossorigin` sends the page's origin, since this server may restrict origins. */
const uiFragment = (
  { globalName, script, styles }: UiBundle,
  { folder, component }: { folder: string; component: string },
): string => {
  const links = styles.map(
    ({ name }) => `<link rel="stylesheet" crossorigin="anonymous" href=${attribute(`${folder}/${name}`)}>`,
  );
  const call = `${globalName}.render(${literal(component)}, ${literal(SHADOW_ROOT_ID)})`;
  const source = attribute(`${folder}/${script.name}`);
  return [...links, `<script crossorigin="anonymous" src=${source} onload=${attribute(call)}></script>`].join(
    "\n",
  );
};

interface UiServiceParts {
  config: UiConfig;
  authorize: Authorize;
  /** Throws `assistantNotFound`. */
  graphOf(caller: Caller, reference: string): Promise<string>;
  logger: Logger;
}

export const createUiService = ({ config, authorize, graphOf, logger }: UiServiceParts) => {
  const entries = new Map(config.entries.map((entry) => [entry.name, entry]));
  const bundles = new Map<string, Promise<UiBundle>>();

  /** Undefined for an unknown name. Tries a failed bundle again, because its files may be fixed. */
  const bundleOf = (name: string): Promise<UiBundle> | undefined => {
    const entry = entries.get(name);
    if (entry === undefined) return undefined;
    const known = bundles.get(name);
    if (known !== undefined) return known;
    const made = bundleUi(entry, config);
    bundles.set(name, made);
    made.then(
      ({ warnings }) => {
        for (const text of new Set(warnings))
          logger.warn({ ui: name, file: entry.file, text }, "components were bundled");
      },
      (error: unknown) => {
        bundles.delete(name);
        // The stack would be esbuild's.
        const why = error instanceof UiBuildError ? { text: error.message } : { err: error };
        logger.error({ ui: name, file: entry.file, ...why }, "components could not be bundled");
      },
    );
    return made;
  };

  const nameFor = async (caller: Caller, reference: string): Promise<string> => {
    if (!entries.has(reference)) return await graphOf(caller, reference);
    await authorize(caller, "assistants", "read", { assistant_id: reference });
    return reference;
  };

  return {
    /** Bundles at the start, to log faults early. */
    prepare(): void {
      for (const name of entries.keys()) bundleOf(name)?.catch(() => undefined);
    },

    /** `address`: this server's address in the page. Throws `not_found`. */
    async fragment(
      caller: Caller,
      reference: string,
      { component, address }: { component: string; address: string },
    ): Promise<string> {
      const name = await nameFor(caller, reference);
      const bundle = await bundleOf(name);
      if (bundle === undefined) throw uiNotFound(reference, component);
      return uiFragment(bundle, { folder: `${address}/ui/${encodeURIComponent(name)}`, component });
    },

    /**
     * Pages load files without a key, so this never starts a bundle: strangers could repeat failing bundles. Throws
     * `not_found`.
     */
    async file(name: string, fileName: string): Promise<UiFile> {
      const bundle = await bundles.get(name)?.catch(() => undefined);
      const found = bundle && [bundle.script, ...bundle.styles].find((file) => file.name === fileName);
      if (found === undefined) throw uiFileNotFound(fileName);
      return found;
    },
  };
};

export type UiService = ReturnType<typeof createUiService>;
