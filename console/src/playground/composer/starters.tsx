import { MessageSquareText } from "lucide-react";
import type { Assistant } from "@langchain/langgraph-sdk";
import { isOfGraph } from "../../parts/assistants.ts";
import { truncate } from "../../design/truncate.ts";
import styles from "./starters.module.css";

const SHOWN_AT_MOST = 6;
const CHARACTERS_AT_MOST = 500;
const CHARACTERS_SHOWN = 140;

/** Questions to begin with, from the metadata `starters` of the assistant, else of its graph's own assistant. */
export const startersOf = (assistant: Assistant | undefined, assistants: readonly Assistant[]): string[] => {
  const ofGraph = assistants.find((one) => one.graph_id === assistant?.graph_id && isOfGraph(one));
  const starters = assistant?.metadata?.["starters"] ?? ofGraph?.metadata?.["starters"];
  if (!Array.isArray(starters)) return [];
  const texts = (starters as unknown[]).filter(
    (one): one is string => typeof one === "string" && one.trim() !== "" && one.length <= CHARACTERS_AT_MOST,
  );
  return [...new Set(texts)].slice(0, SHOWN_AT_MOST);
};

export const Starters = ({
  starters,
  onChoose,
}: {
  starters: readonly string[];
  onChoose(text: string): void;
}) => (
  <ul className={styles.starters} aria-label="Questions to begin with">
    {starters.map((text) => (
      <li key={text}>
        <button type="button" onClick={() => onChoose(text)}>
          <MessageSquareText aria-hidden size={16} strokeWidth={1.75} />
          <span>{truncate(text, CHARACTERS_SHOWN)}</span>
        </button>
      </li>
    ))}
  </ul>
);
