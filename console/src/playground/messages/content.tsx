import { isObject } from "../../parts/is-object.ts";
import { JsonView } from "../../parts/json.tsx";
import { fileOf, textIn } from "./file-block.ts";
import { AudioPlayer, FileCard } from "./file-card.tsx";
import { Markdown, PlainText } from "./markdown.tsx";
import styles from "./message.module.css";

const IMAGE_TYPE = /^image\/[\w.+-]+$/;
const isOwnImage = (url: string): boolean => /^data:image\/[\w.+-]+[;,]/.test(url);

/** LangChain has used four formats for images. */
const addressOfImage = (block: Record<string, unknown>): string | undefined => {
  const source = isObject(block["source"]) ? block["source"] : block;
  const data = textIn(source["data"]);
  if (data !== undefined) {
    const type = textIn(source["mimeType"]) ?? textIn(source["mime_type"]) ?? textIn(source["media_type"]);
    return `data:${type !== undefined && IMAGE_TYPE.test(type) ? type : "image/png"};base64,${data}`;
  }
  const named = block["image_url"];
  return textIn(isObject(named) ? named["url"] : named) ?? textIn(source["url"]);
};

export const Image = ({ address, name }: { address: string; name: string }) =>
  isOwnImage(address) ? (
    <img className={styles.image} src={address} alt={name} />
  ) : /^https?:\/\//i.test(address) ? (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {name}: {address}
    </a>
  ) : (
    <span className="faint">{name}, which can&apos;t be shown</span>
  );

export const Reasoning = ({ text, isOpen = false }: { text: string; isOpen?: boolean }) => (
  <details className={styles.reasoning} open={isOpen}>
    <summary>Reasoning</summary>
    <PlainText text={text} />
  </details>
);

const summaryText = (summary: unknown): string | undefined =>
  Array.isArray(summary)
    ? (summary as unknown[]).map((part) => (isObject(part) ? (textIn(part["text"]) ?? "") : "")).join("\n\n")
    : textIn(summary);

const reasoningOfBlock = (block: Record<string, unknown>): string | undefined =>
  textIn(block["reasoning"]) ??
  textIn(block["thinking"]) ??
  summaryText(block["summary"]) ??
  textIn(block["text"]);

/** Some providers put the reasoning beside the content. */
export const reasoningBeside = (additional: Record<string, unknown> | undefined): string | undefined => {
  const beside = additional?.["reasoning_content"] ?? additional?.["reasoning"];
  const text = isObject(beside) ? summaryText(beside["summary"]) : textIn(beside);
  return text === "" ? undefined : text;
};

/** Shown with the tool calls of the message. */
const SHOWN_ELSEWHERE: ReadonlySet<unknown> = new Set([
  "tool_use",
  "tool_call",
  "tool_call_chunk",
  "invalid_tool_call",
  "input_json_delta",
  "function_call",
]);

const Block = ({ block, isGrowing }: { block: unknown; isGrowing: boolean }) => {
  if (typeof block === "string") return <Markdown text={block} isGrowing={isGrowing} />;
  if (!isObject(block)) return null;
  const { type } = block;
  if (SHOWN_ELSEWHERE.has(type)) return null;
  if (type === "text" && typeof block["text"] === "string")
    return <Markdown text={block["text"]} isGrowing={isGrowing} />;
  if (type === "reasoning" || type === "thinking") {
    const text = reasoningOfBlock(block);
    return text === undefined || text === "" ? null : <Reasoning text={text} isOpen={isGrowing} />;
  }
  if (type === "image" || type === "image_url" || type === "input_image") {
    const address = addressOfImage(block);
    if (address !== undefined) return <Image address={address} name="Image" />;
  }
  const file = fileOf(block);
  if (file?.kind === "audio" && file.data !== undefined) return <AudioPlayer file={file} />;
  if (file !== undefined) return <FileCard file={file} />;
  return <JsonView value={block} depth={0} />;
};

export const Content = ({ content, isGrowing }: { content: unknown; isGrowing: boolean }) => {
  if (content == null || content === "") return null;
  if (typeof content === "string") return <Markdown text={content} isGrowing={isGrowing} />;
  if (!Array.isArray(content)) return <JsonView value={content} />;
  return (content as unknown[]).map((block, index) => (
    <Block key={index} block={block} isGrowing={isGrowing && index === content.length - 1} />
  ));
};
