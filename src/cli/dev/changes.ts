import { isDeepStrictEqual } from "node:util";
import type { Config } from "../../platform/config/config.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";

/** Both files are read at the same time. */
export interface Basis {
  readonly config: Config;
  readonly project: GraphConfig;
}

/** Leaves out the parts that a reload renews. A change of any other part needs a new server. */
const withoutRenewed = ({ project, config }: Basis): unknown => {
  const { entries, environment: _environment, warning: _warning, ...others } = project;
  return { config, others, ids: others.auth === undefined ? undefined : entries.map(({ id }) => id) };
};

export const needsNewServer = (before: Basis, now: Basis): boolean =>
  !isDeepStrictEqual(withoutRenewed(before), withoutRenewed(now));

export const ownFilesOf = ({ auth, http, storeIndex, ui }: GraphConfig): string[] =>
  [auth?.file, http.app?.file, storeIndex?.module?.file, ...ui.entries.map(({ file }) => file)].filter(
    (file) => file !== undefined,
  );
