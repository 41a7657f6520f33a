import { createContext, useContext, useState } from "react";
import { keepText, keptText } from "../../server/tab-storage.ts";

/** Names the question that a card shows. What is written for it outlives the card; undefined: it does not. */
export const QuestionName = createContext<string | undefined>(undefined);

const nameOf = (question: string, part: string): string => `answer ${question} ${part}`;

/** @param part one of `PARTS` @param initial the same at each call; as JSON */
export const useWritten = <T>(part: Part, initial: T): [written: T, write: (changed: T) => void] => {
  const question = useContext(QuestionName);
  const name = question === undefined ? undefined : nameOf(question, part);
  const [written, setWritten] = useState<T>(() => {
    const kept = name === undefined ? undefined : keptText(name);
    return kept === undefined ? initial : (JSON.parse(kept) as T);
  });
  const write = (changed: T): void => {
    setWritten(changed);
    if (name === undefined) return;
    const text = JSON.stringify(changed);
    keepText(name, text === JSON.stringify(initial) ? "" : text);
  };
  return [written, write];
};

const PARTS = ["kind", "text", "draft", "arguments"] as const;
type Part = (typeof PARTS)[number];

/** For a question that is answered. */
export const forgetWritten = (question: string): void => {
  for (const part of PARTS) keepText(nameOf(question, part), "");
};
