/** Values without a JSON form: dates, maps, sets, bytes, big numbers, undefined; and unusual keys. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  when: Annotation<Date>(),
  map: Annotation<Map<string, unknown>>(),
  set: Annotation<Set<number>>(),
  bytes: Annotation<Uint8Array>(),
  big: Annotation<bigint>(),
  nothing: Annotation<unknown>(),
  nil: Annotation<null>(),
  'quote " and \\ backslash': Annotation<string>(),
  never: Annotation<string>(),
});

export const graph = new StateGraph(State)
  .addNode("fill", () => ({
    when: new Date(0),
    map: new Map([["key", new Date(1)]]),
    set: new Set([1, 2]),
    bytes: new Uint8Array([1, 2, 3]),
    big: 2n ** 70n,
    nothing: undefined,
    nil: null,
    'quote " and \\ backslash': 'line\nbreak \u2028 "quoted" \u0000',
  }))
  .addNode("more", () => ({ when: new Date(2) }))
  .addEdge(START, "fill")
  .addEdge("fill", "more")
  .addEdge("more", END)
  .compile();
