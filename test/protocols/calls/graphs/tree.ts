import { START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";

const Tree = z.object({
  name: z.string(),
  get children() {
    return z.array(Tree).optional();
  },
});

/** Returns the tree with its branches in reverse. */
export const graph = new StateGraph({
  state: z.object({ tree: Tree.optional(), reversed: Tree.optional() }),
  input: z.object({ tree: Tree.optional() }),
  output: z.object({ reversed: Tree.optional() }),
})
  .addNode("reverse", ({ tree }) => {
    const reversed = ({ name, children }: z.infer<typeof Tree>): z.infer<typeof Tree> => ({
      name,
      ...(children === undefined ? {} : { children: children.map(reversed).reverse() }),
    });
    return tree === undefined ? {} : { reversed: reversed(tree) };
  })
  .addEdge(START, "reverse")
  .compile();
