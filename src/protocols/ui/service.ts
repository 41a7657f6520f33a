import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { uiFileNotFound, uiNotFound } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { UiConfig } from "../../graphs/project/ui.ts";
import { bundleUi, UiBuildError, type UiBundle, type UiFile } from "./bundle.ts";
import { uiFragment } from "./fragment.ts";

export interface UiServiceParts {
  config: UiConfig;
  authorize: Authorize;
  /** The graph of an assistant; throws `assistantNotFound`. */
  graphOf(caller: Caller, reference: string): Promise<string>;
  logger: Logger;
}

/** Components of generative user interfaces: bundled once, on first need, and kept in memory. */
export const createUiService = ({ config, authorize, graphOf, logger }: UiServiceParts) => {
  const entries = new Map(config.entries.map((entry) => [entry.name, entry]));
  const bundles = new Map<string, Promise<UiBundle>>();

  /** Undefined if there are no components of that name. A bundle that failed is tried again: its files may be mended. */
  const bundleOf = (name: string): Promise<UiBundle> | undefined => {
    const entry = entries.get(name);
    if (entry === undefined) return undefined;
    const known = bundles.get(name);
    if (known !== undefined) return known;
    const made = bundleUi(entry, config);
    bundles.set(name, made);
    made.then(
      ({ advice }) => {
        if (advice !== undefined)
          logger.warn({ ui: name, file: entry.file, text: advice }, "components were bundled");
      },
      (error: unknown) => {
        bundles.delete(name);
        // What is wrong with them stands in the sentence; stacks would be those of esbuild.
        const why = error instanceof UiBuildError ? { text: error.message } : { err: error };
        logger.error({ ui: name, file: entry.file, ...why }, "components could not be bundled");
      },
    );
    return made;
  };

  /** By the name of an entry, or by an assistant of the graph that has this name. */
  const nameFor = async (caller: Caller, reference: string): Promise<string> => {
    if (!entries.has(reference)) return await graphOf(caller, reference);
    await authorize(caller, "assistants", "read", { assistant_id: reference });
    return reference;
  };

  return {
    /** Bundles everything, so that faults are told at the start; nobody waits for it. */
    prepare(): void {
      for (const name of entries.keys()) bundleOf(name)?.catch(() => undefined);
    },

    /**
     * HTML that shows a component in a page. `address`: of this server, as the page knows it. Throws `not_found` for an
     * assistant that is not there or has no components, and for a component that is not among them.
     */
    async fragment(
      caller: Caller,
      reference: string,
      { component, address }: { component: string; address: string },
    ): Promise<string> {
      const name = await nameFor(caller, reference);
      const bundle = await bundleOf(name);
      if (bundle === undefined || bundle.componentNames?.has(component) === false) {
        throw uiNotFound(reference, component);
      }
      return uiFragment(bundle, { folder: `${address}/ui/${encodeURIComponent(name)}`, component });
    },

    /**
     * A file of a bundle, for anybody: a page loads it without a key. So nothing is bundled and no failure is told for it: a
     * stranger had components bundled that can't be, again and again, with two lines in the log each time. Throws `not_found`.
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
