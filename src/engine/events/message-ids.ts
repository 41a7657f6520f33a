import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { STREAMED_MESSAGES } from "../../graphs/model-chunks.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isMessage } from "../../state/values/types/message.ts";

const HIDDEN_TAG = "langsmith:hidden";

interface Identified {
  id?: string | null;
  lc_kwargs?: { id?: string };
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

const giveId = (value: unknown): void => {
  if (!isObject(value) || !isMessage(value)) return;
  const message = value as Identified;
  if (message.id != null) return;
  message.id = newId();
  if (isObject(message.lc_kwargs)) message.lc_kwargs.id = message.id;
};

const giveIds = (value: unknown): void => (Array.isArray(value) ? value.forEach(giveId) : giveId(value));

/**
 * Gives each message that a node returns its own id. LangGraph's mode `messages` gives them all the same id
 * (1.4.18), so the reducer keeps only the last one. `awaitHandlers`: LangGraph's own handler must run later.
 */
class MessageIdsHandler extends BaseCallbackHandler {
  override name = "ThreadloomMessageIds";
  override awaitHandlers = true;
  override ignoreLLM = true;
  override ignoreRetriever = true;
  override ignoreAgent = true;
  readonly [STREAMED_MESSAGES] = new Set<string>();
  private readonly nodes = new Set<string>();

  override handleChainStart(
    _chain: unknown,
    _inputs: unknown,
    runId: string,
    _parentRunId?: string,
    tags?: string[],
    metadata?: Record<string, unknown>,
    _runType?: string,
    name?: string,
  ): void {
    if (name !== undefined && name === metadata?.langgraph_node && !tags?.includes(HIDDEN_TAG))
      this.nodes.add(runId);
  }

  override handleChainEnd(outputs: unknown, runId: string): void {
    if (!this.nodes.delete(runId)) return;
    giveIds(outputs);
    if (isObject(outputs) && !Array.isArray(outputs)) Object.values(outputs).forEach(giveIds);
  }

  override handleChainError(_error: unknown, runId: string): void {
    this.nodes.delete(runId);
  }
}

export const createMessageIds = (): BaseCallbackHandler => new MessageIdsHandler();
