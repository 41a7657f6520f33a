import { isDeepStrictEqual } from "node:util";
import type { Config } from "../../platform/config/config.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";

/** What a server is built from: config and langgraph.json, as they were read at the same time. */
export interface Basis {
  readonly config: Config;
  readonly project: GraphConfig;
}

/** What a server hears of langgraph.json at each renewal; all else it has read once. */
const withoutRenewed = ({ project, config }: Basis): unknown => {
  const { entries, environment: _environment, warning: _warning, ...others } = project;
  return { config, others, ids: others.auth === undefined ? undefined : entries.map(({ id }) => id) };
};

/** Whether a server has to be built anew, because a renewal of its graphs would leave something as it was. */
export const needsNewServer = (before: Basis, now: Basis): boolean =>
  !isDeepStrictEqual(withoutRenewed(before), withoutRenewed(now));

/** Files of the project whose code the server itself executes: they are loaded once. */
export const ownFilesOf = ({ auth, http, storeIndex, ui }: GraphConfig): string[] =>
  [auth?.file, http.app?.file, storeIndex?.module?.file, ...ui.entries.map(({ file }) => file)].filter(
    (file) => file !== undefined,
  );
