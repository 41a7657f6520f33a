import { BaseCallbackHandler } from "@langchain/core/callbacks/base";

export interface ReferenceSpan {
  kind: string;
  /** Models: their class. */
  name: string;
  /** Kind and name of the span around it. */
  inside: string | null;
  status: string;
}

type Metadata = Record<string, unknown> | undefined;

const statusOf = (error: unknown): string => {
  const { is_bubble_up: bubbles, name } = error as { is_bubble_up?: boolean; name?: string };
  return bubbles !== true ? "error" : name === "ParentCommand" ? "success" : "interrupted";
};

/** Records what LangChain's callbacks say, by run of the server. */
class Reference extends BaseCallbackHandler {
  override name = "reference";
  override awaitHandlers = true;
  private readonly spans = new Map<string, ReferenceSpan>();
  private readonly parents = new Map<string, string | undefined>();
  private readonly of = new Map<string, string>();

  private add(id: string, parent: string | undefined, kind: string, name: string, metadata: Metadata): void {
    let around = parent;
    while (around !== undefined && !this.spans.has(around)) around = this.parents.get(around);
    const outer = around === undefined ? undefined : this.spans.get(around);
    const inside = outer === undefined ? null : `${outer.kind} ${outer.name}`;
    this.spans.set(id, { kind, name, inside, status: "running" });
    this.of.set(id, String(metadata?.["run_id"]));
  }

  private end(id: string, status: string): void {
    const span = this.spans.get(id);
    if (span !== undefined) span.status = status;
  }

  spansOf(runId: string): ReferenceSpan[] {
    return [...this.spans].flatMap(([id, span]) => (this.of.get(id) === runId ? [span] : []));
  }

  override handleChainStart(
    _chain: unknown,
    _inputs: unknown,
    id: string,
    parent?: string,
    tags?: string[],
    metadata?: Metadata,
    _type?: string,
    name?: string,
  ): void {
    this.parents.set(id, parent);
    const isNode = name === metadata?.["langgraph_node"] && tags?.includes("langsmith:hidden") !== true;
    // A node whose function has the node's name would count twice.
    const isInner = this.spans.get(parent ?? "")?.name === name;
    if (isNode && name !== undefined && name !== "__start__" && !isInner)
      this.add(id, parent, "node", name, metadata);
  }
  override handleChainEnd(_outputs: unknown, id: string): void {
    this.end(id, "success");
  }
  override handleChainError(error: unknown, id: string): void {
    this.end(id, statusOf(error));
  }
  override handleChatModelStart(
    model: { id?: string[] },
    _messages: unknown,
    id: string,
    parent?: string,
    _extra?: unknown,
    _tags?: unknown,
    metadata?: Metadata,
  ): void {
    this.add(id, parent, "model", String(metadata?.["ls_model_name"] ?? model.id?.at(-1)), metadata);
  }
  override handleLLMEnd(_output: unknown, id: string): void {
    this.end(id, "success");
  }
  override handleLLMError(_error: unknown, id: string): void {
    this.end(id, "error");
  }
  override handleToolStart(
    _tool: unknown,
    _input: string,
    id: string,
    parent?: string,
    _tags?: string[],
    metadata?: Metadata,
    name?: string,
  ): void {
    this.add(id, parent, "tool", String(name), metadata);
  }
  override handleToolEnd(_output: unknown, id: string): void {
    this.end(id, "success");
  }
  override handleToolError(error: unknown, id: string): void {
    this.end(id, statusOf(error));
  }
}

/** On the global object, because server and test load separate copies of this file. */
const REFERENCE = Symbol.for("threadloom.test.trace-reference");
const shared = globalThis as { [REFERENCE]?: Reference };
export const reference = (shared[REFERENCE] ??= new Reference());
