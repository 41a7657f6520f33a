/** Answers with every kind of message content, some of it hostile; and describes its input. */
import { AIMessage, SystemMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

/** 2 x 2 pixels. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8Dwn4GBgYGJgYGBgQEAEAoCAfwuVAAAAAAASUVORK5CYII=";

const TEXT = [
  "# A heading",
  "",
  'A **bold** word, <b onclick="window.stolen = 1">HTML</b>, <script>window.stolen = 2</script>',
  "",
  "| one | two |",
  "| --- | --- |",
  "| 1 | 2 |",
  "",
  "![a spy](https://spy.example/pixel.png) and [a page](https://page.example/) and [a trap](javascript:alert(1))",
].join("\n");

export const graph = new StateGraph(MessagesAnnotation)
  // Each message has an id, because LangGraph gives all messages without one the same id while messages are streamed.
  .addNode("show", ({ messages }) => {
    const kinds = messages.flatMap(({ content }) =>
      Array.isArray(content) ? content.map(({ type }) => type) : [],
    );
    return {
      messages: [
        new SystemMessage({ id: "system", content: "You are shown things." }),
        new AIMessage({
          id: "constructor",
          content: [
            { type: "reasoning", reasoning: "First I think." },
            { type: "text", text: TEXT },
            { type: "image", source_type: "base64", mime_type: "image/png", data: PICTURE },
            { type: "image_url", image_url: { url: "https://spy.example/other.png" } },
            { type: "hologram", depth: 3 },
          ],
        }),
        new AIMessage({ id: "blocks", content: `Blocks: ${kinds.join(", ") || "none"}.` }),
        new AIMessage({ id: "long", content: `Long: ${"x".repeat(200_000)}` }),
      ],
    };
  })
  .addEdge(START, "show")
  .addEdge("show", END)
  .compile();
