/** The functional API: a task, then an interrupt; the state is the result of the entrypoint. */
import { entrypoint, interrupt, task } from "@langchain/langgraph";

const double = task("double", async (value: number) => value * 2);

export const graph = entrypoint("functional", async (input: { value: number }) => {
  const doubled = await double(input.value);
  return { doubled, answer: interrupt("Enough?") as unknown };
});
