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

type OnReturned = (output: unknown, metadata: Readonly<Record<string, unknown>>) => void;

/**
 * Gives each message that a node returns its own id. LangGraph's mode `messages` gives them all the same id
 * (before 1.7), so the reducer keeps only the last one. `awaitHandlers`: LangGraph's own handler must run later.
 */
class MessageIdsHandler extends BaseCallbackHandler {
  override name = "ThreadloomMessageIds";
  override awaitHandlers = true;
  override ignoreLLM = true;
  override ignoreRetriever = true;
  override ignoreAgent = true;
  readonly [STREAMED_MESSAGES] = new Set<string>();
  private readonly nodes = new Map<string, Readonly<Record<string, unknown>>>();

  constructor(private readonly onReturned: OnReturned | undefined) {
    super();
  }

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
      this.nodes.set(runId, { tags, name, ...metadata });
  }

  override handleChainEnd(outputs: unknown, runId: string): void {
    const metadata = this.nodes.get(runId);
    if (metadata === undefined) return;
    this.nodes.delete(runId);
    giveIds(outputs);
    if (isObject(outputs) && !Array.isArray(outputs)) Object.values(outputs).forEach(giveIds);
    this.onReturned?.(outputs, metadata);
  }

  override handleChainError(_error: unknown, runId: string): void {
    this.nodes.delete(runId);
  }
}

/** `onReturned`: called before LangGraph sends the messages. `metadata`: as LangGraph sends them. */
export const createMessageIds = (onReturned?: OnReturned): BaseCallbackHandler =>
  new MessageIdsHandler(onReturned);
