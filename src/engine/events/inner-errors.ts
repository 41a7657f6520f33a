import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { errorForClients } from "../../platform/domain/error-for-clients.ts";

/** Remembers what failed until its event is read, because the event has only text. */
class ToolErrorsHandler extends BaseCallbackHandler {
  override name = "ThreadloomToolErrors";
  override awaitHandlers = true;
  override ignoreLLM = true;
  override ignoreChain = true;
  override ignoreRetriever = true;

  constructor(private readonly thrown: Map<string, unknown>) {
    super();
  }

  override handleToolError(error: unknown, runId: string): void {
    this.thrown.set(runId, error);
  }
}

const STACK_FRAME = /\n\s+at .*/gs;

/** LangChain's inner events of failures have the stack (1.2.13), which would show readers the paths of the server. */
export const createInnerErrors = () => {
  const thrown = new Map<string, unknown>();
  return {
    handler: new ToolErrorsHandler(thrown),
    shown(event: StreamEvent): StreamEvent {
      if (!event.event.endsWith("_error")) return event;
      const { run_id: runId, data } = event;
      if (!thrown.has(runId))
        return { ...event, data: { ...data, error: String(data.error).replace(STACK_FRAME, "") } };
      const { error, message } = errorForClients(thrown.get(runId));
      thrown.delete(runId);
      return { ...event, data: { ...data, error: `${error}: ${message}` } };
    },
  };
};
