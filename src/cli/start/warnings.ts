import type { Config } from "../../platform/config/config.ts";
import { unusedDataWarning } from "../../platform/config/database-options.ts";
import { environmentWarning } from "../../platform/config/hosted-environment.ts";
import { misspeltVariables } from "../../platform/config/misspelt-variables.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";

interface Circumstances {
  project: GraphConfig;
  config: Config;
  environment: Readonly<Record<string, string | undefined>>;
  namesFolder: boolean;
  logger: Logger;
}

export const logWarnings = ({ project, config, environment, namesFolder, logger }: Circumstances): void => {
  const file = config.graphConfigFile;
  if (project.auth !== undefined && config.unsafeIgnoreAuth)
    logger.warn(`${file}: auth is ignored, because of --unsafe-ignore-auth`);
  if (project.warning !== undefined) logger.warn(`${file}: ${project.warning}`);
  if (project.forImages.length > 0)
    logger.debug({ keys: project.forImages }, `${file}: keys for building an image, which a server ignores`);
  const warnings = [
    environmentWarning(environment),
    misspeltVariables(environment),
    unusedDataWarning(namesFolder, config.databaseUrl),
  ];
  for (const warning of warnings) if (warning !== undefined) logger.warn(warning);
};
