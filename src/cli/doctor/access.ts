import { assertMayListen, isExposed, type Config } from "../../platform/config/config.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { fail, ok, warn, type Check } from "./checks.ts";

interface Doors {
  hasStoredKeys: boolean;
  hasAuth: boolean;
}

const waysOf = ({ apiKeys }: Config, { hasStoredKeys, hasAuth }: Doors): string[] => [
  ...(apiKeys.length > 0 ? ["API_KEYS"] : []),
  ...(hasStoredKeys ? ["API keys in the database"] : []),
  ...(hasAuth ? ["auth of langgraph.json"] : []),
];

export const checkAccess = (config: Config, doors: Doors): Check => {
  const ways = waysOf(config, doors);
  const make = "Make one with 'threadloom keys create --name admin --scopes admin'.";
  try {
    assertMayListen(config, doors);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return fail("Access", `a start on ${config.host} is refused: there are no API keys`, make);
  }
  if (ways.length > 0) return ok("Access", ways.join(", "));
  if (config.unsafeNoAuth)
    return warn(
      "Access",
      "open, as --unsafe-no-auth says",
      "Make sure that the proxy in front checks access.",
    );
  return isExposed(config)
    ? fail("Access", "open", make)
    : ok("Access", "open on this machine; without API keys, the server refuses to listen beyond loopback");
};
