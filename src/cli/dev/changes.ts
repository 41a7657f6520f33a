import { isDeepStrictEqual } from "node:util";
import type { Config } from "../../platform/config/config.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";

/** Config and langgraph.json, read at the same time. */
export interface Basis {
  readonly config: Config;
  readonly project: GraphConfig;
}

/** Everything that a server reads only once. A reload renews the rest. */
const withoutRenewed = ({ project, config }: Basis): unknown => {
  const { entries, environment: _environment, warning: _warning, ...others } = project;
  return { config, others, ids: others.auth === undefined ? undefined : entries.map(({ id }) => id) };
};

/** Whether a reload of the graphs is not enough for a change. */
export const needsNewServer = (before: Basis, now: Basis): boolean =>
  !isDeepStrictEqual(withoutRenewed(before), withoutRenewed(now));

/** Project files that the server executes. They are loaded once. */
export const ownFilesOf = ({ auth, http, storeIndex, ui }: GraphConfig): string[] =>
  [auth?.file, http.app?.file, storeIndex?.module?.file, ...ui.entries.map(({ file }) => file)].filter(
    (file) => file !== undefined,
  );
