import type { Config } from "../../platform/config/config.ts";
import { unusedDataWarning } from "../../platform/config/options.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";

const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  REDIS_URI: "there is no Redis",
  LANGGRAPH_CLOUD_LICENSE_KEY: "there is no license",
  BG_JOB_ISOLATED_LOOPS: "graphs run in processes of their own with --workers",
  LANGGRAPH_AES_LEGACY_KEY: "name the key in LANGGRAPH_AES_KEY, behind the new one",
};

export const environmentWarning = (
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined => {
  const reasons = new Map<string, string[]>();
  for (const [name, reason] of Object.entries(WITHOUT_EFFECT)) {
    if ((environment[name] ?? "") !== "") reasons.set(reason, [...(reasons.get(reason) ?? []), name]);
  }
  if (reasons.size === 0) return undefined;
  const parts = [...reasons].map(([reason, names]) => `${names.join(", ")} (${reason})`);
  return `variables of the hosted server that have no effect here: ${parts.join(", ")}`;
};

interface Circumstances {
  project: GraphConfig;
  config: Config;
  environment: Readonly<Record<string, string | undefined>>;
  namesFolder: boolean;
  logger: Logger;
}

export const logWarnings = ({ project, config, environment, namesFolder, logger }: Circumstances): void => {
  const file = config.graphConfigFile;
  if (project.warning !== undefined) logger.warn(`${file}: ${project.warning}`);
  if (project.forImages.length > 0)
    logger.debug({ keys: project.forImages }, `${file}: keys for building an image, which a server ignores`);
  const warnings = [environmentWarning(environment), unusedDataWarning(namesFolder, config.databaseUrl)];
  for (const warning of warnings) if (warning !== undefined) logger.warn(warning);
};
