import { memo, type ReactNode } from "react";
import rehypeHighlight from "rehype-highlight";

const highlight = rehypeHighlight();
type Root = Parameters<typeof highlight>[0];
type Node = Root["children"][number];

const shown = (node: Node, key: number): ReactNode => {
  if (node.type === "text") return node.value;
  if (node.type !== "element") return null;
  const names = node.properties["className"];
  return (
    <span key={key} className={Array.isArray(names) ? names.join(" ") : undefined}>
      {node.children.map(shown)}
    </span>
  );
};

/** Receives the note that a language has no grammar. */
const NO_FILE = { message: () => undefined } as never;

/** A language without a grammar stays plain. */
const HighlightedCode = memo(({ text, language }: { text: string; language: string }) => {
  const code: Node = {
    type: "element",
    tagName: "code",
    properties: { className: [`language-${language.toLowerCase()}`] },
    children: [{ type: "text", value: text }],
  };
  const pre: Node = { type: "element", tagName: "pre", properties: {}, children: [code] };
  highlight({ type: "root", children: [pre] }, NO_FILE);
  return <code>{code.children.map(shown)}</code>;
});
HighlightedCode.displayName = "HighlightedCode";

export default HighlightedCode;
