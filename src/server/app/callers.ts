import type { AssistantService } from "../../api/assistants/service.ts";
import type { RunService } from "../../api/runs/service.ts";
import type { ThreadService } from "../../api/threads/service.ts";
import { createA2aService } from "../../protocols/a2a/service.ts";
import { createAgUiService } from "../../protocols/agui/service.ts";
import { createCallService } from "../../protocols/calls/service.ts";
import { createMcpService } from "../../protocols/mcp/service.ts";
import type { Foundation } from "./foundation.ts";
import type { Webhooks } from "./webhooks.ts";

interface CalledServices {
  assistants: AssistantService;
  runs: RunService;
  threads: ThreadService;
}

/** The protocols by which other agents and apps call assistants. */
export const createCallers = (
  { access, authorize, database, graphs, mcp: config, threadExpiry, webhooks }: Foundation,
  { assistants, runs, threads }: CalledServices,
  push: Webhooks["push"],
) => {
  const calls = createCallService({ database, authorize, assistants, runs, threads });
  return {
    calls,
    a2a: createA2aService({
      calls,
      push: push && { ...push, config: webhooks },
      security: () => (access.isGuarded ? (access.security ?? {}) : undefined),
    }),
    agui: createAgUiService({ database, authorize, calls }),
    mcp: createMcpService({ calls, graphs, config, threadTtl: threadExpiry.defaultTtl }),
  };
};
