/** A graph below the level of `StateGraph`, with an accumulating topic; only LangGraph can read its states. */
import { LastValue, Topic } from "@langchain/langgraph/channels";
import { Channel, Pregel } from "@langchain/langgraph/pregel";

const shout = Channel.subscribeTo("input").pipe((text: string) => `${text}!`);

export const graph = new Pregel({
  nodes: { shout: shout.pipe(Channel.writeTo(["output", "log"])) },
  channels: {
    input: new LastValue<string>(),
    output: new LastValue<string>(),
    log: new Topic<string>({ accumulate: true }),
  },
  inputChannels: "input",
  outputChannels: ["output", "log"],
});
