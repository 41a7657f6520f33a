import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { StreamEvent } from "@langchain/core/tracers/log_stream";
import { errorForClients } from "../../platform/domain/error-for-clients.ts";

/** Events of hidden tools are not read, so their errors would stay. */
const REMEMBERED_AT_MOST = 100;

/** Remembers what failed until its event is read, because the event has only text. */
class ToolErrorsHandler extends BaseCallbackHandler {
  override name = "ThreadloomToolErrors";
  override awaitHandlers = true;
  override ignoreLLM = true;
  override ignoreChain = true;
  override ignoreRetriever = true;

  constructor(private readonly thrown: Map<string, { error: string; message: string }>) {
    super();
  }

  override handleToolError(error: unknown, runId: string): void {
    this.thrown.set(runId, errorForClients(error));
    for (const oldest of this.thrown.keys()) {
      if (this.thrown.size <= REMEMBERED_AT_MOST) break;
      this.thrown.delete(oldest);
    }
  }
}

const STACK_FRAMES = /\n[ \t]+at [^\n]*/g;

/** LangChain's inner events of failures have the stack (1.2.13), which would show readers the paths of the server. */
export const createInnerErrors = () => {
  const thrown = new Map<string, { error: string; message: string }>();
  return {
    handler: new ToolErrorsHandler(thrown),
    shown(event: StreamEvent): StreamEvent {
      if (!event.event.endsWith("_error")) return event;
      const { run_id: runId, data } = event;
      const known = thrown.get(runId);
      if (known === undefined)
        return { ...event, data: { ...data, error: String(data.error).replace(STACK_FRAMES, "") } };
      const { error, message } = known;
      thrown.delete(runId);
      return { ...event, data: { ...data, error: `${error}: ${message}` } };
    },
  };
};
