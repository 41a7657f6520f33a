/** The functional API: a task, then a person is asked; the state is what the entrypoint returns. */
import { entrypoint, interrupt, task } from "@langchain/langgraph";

const double = task("double", async (value: number) => value * 2);

export const graph = entrypoint("functional", async (input: { value: number }) => {
  const doubled = await double(input.value);
  return { doubled, answer: interrupt("Enough?") as unknown };
});
