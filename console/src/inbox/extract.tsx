import { contentText } from "../parts/message-text.ts";
import type { ShownMessage } from "./question.ts";
import styles from "./inbox.module.css";

const NAMES: ReadonlyMap<unknown, string> = new Map([
  ["human", "Person"],
  ["user", "Person"],
  ["ai", "Assistant"],
  ["assistant", "Assistant"],
  ["tool", "Tool"],
  ["system", "System"],
]);

const CHARACTERS_SHOWN = 500;

/** The end of the conversation that led to the question. */
export const Extract = ({ messages }: { messages: readonly ShownMessage[] }) => {
  const shown = messages
    .map(({ type, content }) => ({
      name: NAMES.get(type) ?? "Message",
      text: contentText(content).trim().slice(0, CHARACTERS_SHOWN),
    }))
    .filter(({ text }) => text !== "");
  if (shown.length === 0) return null;
  return (
    <ul className={styles.extract} aria-label="Last messages">
      {shown.map(({ name, text }, index) => (
        <li key={index}>
          <span className="faint">{name}</span>
          <p>{text}</p>
        </li>
      ))}
    </ul>
  );
};
