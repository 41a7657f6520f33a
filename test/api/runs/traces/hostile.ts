import { StructuredTool, tool } from "@langchain/core/tools";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";
import { ReportingModel, USAGE } from "./model.ts";

const State = Annotation.Root({ count: Annotation<number>(), messages: Annotation<unknown[]>() });
const graphOf = (work: () => Promise<unknown>) =>
  new StateGraph(State)
    .addNode("work", async () => {
      await work();
      return { count: 1 };
    })
    .addEdge(START, "work")
    .compile();

const CALLS = 100_000;
const odd = (answered: string, usage: object) =>
  new ReportingModel({ model: "odd", answered, usage: usage as typeof USAGE });

export const nulInModel = graphOf(() => odd("a\u0000b\ud800", USAGE).invoke("hello"));
export const cutName = graphOf(() => odd(`${"x".repeat(99)}😀`, USAGE).invoke("hello"));
export const hugeTokens = graphOf(async () => {
  const most = Number.MAX_SAFE_INTEGER;
  const model = odd("huge", { input_tokens: most, output_tokens: most });
  // Together more than PostgreSQL's `bigint`.
  await Promise.all(Array.from({ length: 1_100 }, () => model.invoke("hello")));
});
export const oddTokens = graphOf(async () => {
  for (const tokens of [Number.NaN, -5, 1.5, Infinity, "12", 10n, null, {}])
    await odd("odd", { input_tokens: tokens, output_tokens: tokens, input_token_details: null }).invoke("hi");
});
export const manyModels = graphOf(async () => {
  for (let call = 0; call < 1_000; call += 1) await odd(`model-${call}`, USAGE).invoke("hello");
});
export const nullCallbacks = graphOf(() =>
  odd("plain", USAGE).generate([[]], undefined, null as unknown as undefined),
);

const cyclic: Record<string, unknown> = { name: "me\u0000\ud800" };
cyclic["self"] = cyclic;
const revoked = Proxy.revocable({}, {});
revoked.revoke();
const throwing = {
  get content(): string {
    throw new Error("content is not there");
  },
};
const VALUES: unknown[] = [
  "\u0000\ud800",
  cyclic,
  throwing,
  new Uint8Array(CALLS),
  Buffer.alloc(50_000_000),
  Object.fromEntries(Array.from({ length: CALLS }, (_, index) => [`key${index}`, index])),
  "😀".repeat(5_000),
  { big: 1n, map: new Map(), date: new Date(0), none: undefined, call: () => 1 },
];

/** Returns what it is given, without `toJSON` and other work of LangChain. */
class Returning extends StructuredTool {
  name = "returns";
  description = "Returns a value.";
  schema = z.object({});
  constructor(private readonly value: unknown) {
    super();
  }
  protected override async _call(): Promise<never> {
    return this.value as never;
  }
}
class Nameless extends Returning {
  override name = undefined as unknown as string;
}
const kept: boolean[] = [];
export const hostileTools = graphOf(async () => {
  for (const value of VALUES) kept.push((await new Returning(value).invoke({})) === value);
  if (kept.includes(false)) throw new Error("a result was changed");
  await new Nameless(1).invoke({});
});

const withStack = Object.assign(new Error("lost\u0000\ud800"), { stack: {} });
const THROWN: unknown[] = [
  withStack,
  revoked.proxy,
  Object.create(null),
  "a text\u0000",
  Object.assign(new Error("a place"), { stack: "Error\n    at file:///a%2fb/c.ts:1:2" }),
  {
    get message(): string {
      throw new Error("message is not there");
    },
  },
];
export const hostileErrors = graphOf(async () => {
  for (const thrown of THROWN) {
    const throws = tool(
      async () => {
        throw thrown;
      },
      { name: "throws", description: "Throws.", schema: z.object({}) },
    );
    try {
      await throws.invoke({});
    } catch (error) {
      if (error !== thrown) throw new Error("another error was thrown", { cause: error });
    }
  }
});
export const failsOddly = graphOf(async () => {
  throw withStack;
});
