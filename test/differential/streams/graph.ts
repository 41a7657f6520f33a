/** Builds the graph of a drawn case, for the server and for LangGraph alone. */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { dispatchCustomEvent } from "@langchain/core/callbacks/dispatch";
import { AIMessage, AIMessageChunk, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import {
  Annotation,
  Command,
  END,
  interrupt,
  isGraphInterrupt,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
  type BaseCheckpointSaver,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";

/** What one node does. */
export type Deed =
  | { does: "say" }
  | { does: "log" }
  | { does: "think"; tokens: number; named: boolean; quiet: boolean; fails: boolean }
  | { does: "write"; events: number; characters: number; atOnce: boolean; fails: boolean }
  | { does: "ask"; times: number }
  | { does: "use"; pieces: number; fails: boolean }
  /** A custom event of LangChain. */
  | { does: "tell" }
  /** A graph that the node calls. */
  | { does: "call"; steps: Step[] }
  | { does: "fail" };

export type Step =
  | Deed
  | { does: "jump" }
  | { does: "beside"; deeds: Deed[] }
  | { does: "send"; times: number; deed: Deed }
  | { does: "inside"; steps: Step[] };

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  log: Annotation<string[]>({ reducer: (before, added) => [...before, ...added], default: () => [] }),
});
type Values = typeof State.State;
type Update = typeof State.Update;
type Act = (state: Values, config: LangGraphRunnableConfig) => Promise<Update>;

/** A turn of the event loop: LangGraph has passed on by then what was streamed before. */
const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

class DrawnModel extends SimpleChatModel {
  constructor(
    private readonly path: string,
    private readonly deed: Extract<Deed, { does: "think" }>,
  ) {
    super({});
  }

  override _llmType(): string {
    return "drawn";
  }

  private text(index: number): string {
    return `${this.path}.${index} `;
  }

  override async _call(): Promise<string> {
    await turns(1);
    if (this.deed.fails) throw new RangeError(`The model of ${this.path} failed.`);
    return Array.from({ length: this.deed.tokens }, (_, index) => this.text(index)).join("");
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (let index = 0; index < this.deed.tokens; index += 1) {
      if (index % 3 === 0) await turns(1);
      const text = this.text(index);
      const id = this.deed.named ? { id: `m-${this.path}` } : {};
      const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text, ...id }) });
      yield chunk;
      await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    }
    await turns(2);
    if (this.deed.fails) throw new RangeError(`The model of ${this.path} failed.`);
  }
}

const used = (path: string, { pieces, fails }: Extract<Deed, { does: "use" }>) =>
  tool(
    async function* () {
      for (let piece = 0; piece < pieces; piece += 1) yield `${path}.${piece}`;
      await turns(2);
      if (fails) throw new TypeError(`The tool of ${path} failed.`);
      return `${path} done`;
    },
    { name: "drawn_tool", description: "Yields pieces." },
  );

const actOf =
  (path: string, deed: Deed): Act =>
  async ({ messages, log }, config) => {
    switch (deed.does) {
      case "say":
        return {
          messages: [new AIMessage({ id: `a-${path}-${messages.length}`, content: `said by ${path}` })],
        };
      case "log":
        return { log: [`${path} after ${log.length}`] };
      case "think":
        return {
          messages: [
            await new DrawnModel(path, deed).invoke(messages, {
              ...config,
              ...(deed.quiet && { tags: ["langsmith:nostream"] }),
            }),
          ],
        };
      case "write":
        for (let index = 0; index < deed.events; index += 1) {
          if (!deed.atOnce) await turns(1);
          config.writer?.({ path, index, text: "x".repeat(deed.characters) });
        }
        await turns(2);
        if (deed.fails) throw new Error(`${path} failed after it wrote.`);
        return { log: [`${path} wrote`] };
      case "ask": {
        const answers: unknown[] = [];
        for (let time = 0; time < deed.times; time += 1) answers.push(interrupt({ path, time }));
        return { log: answers.map((answer) => `${path}: ${JSON.stringify(answer)}`) };
      }
      case "use": {
        const call = { type: "tool_call", id: `call-${path}`, name: "drawn_tool", args: {} } as const;
        const { content } = (await used(path, deed).invoke(call, config)) as ToolMessage;
        return {
          messages: [new ToolMessage({ id: `t-${path}-${messages.length}`, content, tool_call_id: call.id })],
        };
      }
      case "tell":
        await dispatchCustomEvent("told", { path }, config);
        return {};
      case "call": {
        const result = (await build(deed.steps, path).invoke({ messages, log: [] }, config)) as Values;
        return { log: [`${path} of ${log.length}`, ...result.log] };
      }
      case "fail":
        await turns(2);
        throw new Error(`${path} failed.`);
    }
  };

/** Tasks of one step act one after the other, so their events have one order. */
const createQueues = () => {
  const queues = new Map<string, { place: number; ended: Promise<void> }[]>();
  return async (
    place: number,
    config: LangGraphRunnableConfig,
    act: () => Promise<Update>,
  ): Promise<Update> => {
    const { langgraph_checkpoint_ns, langgraph_step } = config.metadata as Record<string, unknown>;
    const graph = String(langgraph_checkpoint_ns).split("|").slice(0, -1).join("|");
    const key = `${graph} ${String(langgraph_step)} ${String(config.configurable?.["thread_id"])}`;
    const queue = queues.get(key) ?? [];
    queues.set(key, queue);
    let end = (): void => undefined;
    queue.push({ place, ended: new Promise((resolve) => (end = resolve)) });
    await turns(2);
    for (const other of queue) if (other.place < place) await other.ended;
    await turns(4);
    // What comes behind a failure would be a matter of luck, so the others then stay where they are.
    const next = (): void => void turns(6).then(end);
    try {
      const update = await act();
      next();
      return update;
    } catch (error) {
      if (isGraphInterrupt(error)) next();
      throw error;
    }
  };
};

type Builder = StateGraph<typeof State.spec, Values, Update, string>;

const entryOf = (path: string, step: Step): string[] =>
  step.does === "beside" ? step.deeds.map((_, index) => `${path}_${index}`) : [path];

const build = (steps: Step[], prefix: string, checkpointer?: BaseCheckpointSaver) => {
  const graph = new StateGraph(State) as unknown as Builder;
  const inTurn = createQueues();
  const pathOf = (index: number): string => `${prefix}s${index}`;
  const entriesAt = (index: number): string[] => {
    const step = steps[index];
    return step === undefined ? [END] : entryOf(pathOf(index), step);
  };
  let exits: string[] = [START];
  const connect = (entries: string[]): void => {
    for (const entry of entries)
      if (exits.length > 1 && entry !== END) graph.addEdge(exits, entry);
      else for (const exit of exits) graph.addEdge(exit, entry);
  };
  for (const [index, step] of steps.entries()) {
    const path = pathOf(index);
    const before = exits;
    const node = (name: string, act: Act, options = {}): void => void graph.addNode(name, act, options);
    switch (step.does) {
      case "beside":
        for (const [place, deed] of step.deeds.entries()) {
          const name = `${path}_${place}`;
          const act = actOf(name, deed);
          node(name, (state, config) => inTurn(place, config, () => act(state, config)));
        }
        break;
      case "send": {
        const act = actOf(`${path}w`, step.deed);
        node(path, () => Promise.resolve({ log: [`${path} sends`] }));
        node(`${path}w`, (sent, config) =>
          inTurn(Number(sent.log[0]), config, () => act({ ...sent, messages: [], log: [] }, config)),
        );
        graph.addConditionalEdges(path, () =>
          Array.from({ length: step.times }, (_, place) => new Send(`${path}w`, { log: [`${place}`] })),
        );
        break;
      }
      case "inside":
        graph.addNode(path, build(step.steps, path) as never);
        break;
      case "jump":
        node(
          path,
          () =>
            Promise.resolve(
              new Command({
                goto: entriesAt(index + 1),
                update: { log: [`${path} jumps`] },
              }) as unknown as Update,
            ),
          { ends: entriesAt(index + 1) },
        );
        break;
      default:
        node(path, actOf(path, step));
    }
    exits = before;
    connect(entryOf(path, step));
    exits = step.does === "jump" ? [] : step.does === "send" ? [`${path}w`] : entryOf(path, step);
  }
  connect([END]);
  return graph.compile(checkpointer === undefined ? {} : { checkpointer });
};

const NOTHING: Step[] = [{ does: "say" }];

export const drawnGraph = (steps: Step[], checkpointer?: BaseCheckpointSaver) =>
  build(steps.length === 0 ? NOTHING : steps, "", checkpointer);

export const graph = ({ configurable = {} }: { configurable?: { steps?: Step[] } }) =>
  drawnGraph(configurable.steps ?? NOTHING);
