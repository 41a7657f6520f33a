import type { Interrupt } from "@langchain/langgraph-sdk";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useMemo, useState } from "react";
import { IconButton } from "../../design/icon-button.tsx";
import { ActionForm } from "./action-card.tsx";
import type { CardAnswer } from "./card.ts";
import type { CardPlace } from "./card-frame.tsx";
import { questionOf } from "./questions.ts";
import { TextForm } from "./text-card.tsx";
import { forgetWritten, QuestionName } from "./written.ts";
import styles from "./interrupts.module.css";

interface QuestionCardsProps {
  interrupts: readonly Interrupt[];
  /** The thread, and when it began to wait. All questions of a task, and of a copied thread, have the same ids. */
  name: string;
  /** The thread no longer waits: the cards can be read, but not sent. */
  isClosed?: boolean;
  showsKeys?: boolean;
  /** @param responses the values for the graph, by interrupt id */
  onAnswer(responses: Record<string, unknown>, words: string): Promise<void>;
}

/** One card at a time. All are answered together, because the first answer alone would start a run. */
export const QuestionCards = ({
  interrupts,
  name,
  isClosed = false,
  showsKeys = false,
  onAnswer,
}: QuestionCardsProps) => {
  const questions = useMemo(() => interrupts.map(({ value }) => questionOf(value)), [interrupts]);
  const cards = questions.flatMap((question) => question.cards);
  const [answers, setAnswers] = useState<ReadonlyMap<number, CardAnswer>>(new Map());
  const [shown, setShown] = useState(0);
  /** What was written in a card stays while another is shown. */
  const [visited, setVisited] = useState<ReadonlySet<number>>(new Set([0]));
  const [isSending, setIsSending] = useState(false);

  const [hasMoved, setHasMoved] = useState(false);

  const nameOf = (index: number): string => `${name} ${interrupts[0]?.id ?? ""} ${index}`;
  const show = (index: number): void => {
    setHasMoved(true);
    setShown(index);
    setVisited(new Set(visited).add(index));
  };
  const decide = (index: number, answer: CardAnswer): void => {
    const all = new Map(answers).set(index, answer);
    setAnswers(all);
    const open = cards.map((_, other) => (index + other) % cards.length).find((other) => !all.has(other));
    if (open !== undefined) return show(open);
    let start = 0;
    const responses = questions.map((question, which) => {
      const values = question.cards.map((_, position) => all.get(start + position)?.value);
      start += question.cards.length;
      return [interrupts[which]?.id ?? "", question.answerOf(values)] as const;
    });
    setIsSending(true);
    const words = cards.length === 1 ? answer.words : `Answered ${cards.length} questions`;
    onAnswer(Object.fromEntries(responses), words).then(
      () => cards.forEach((_, each) => forgetWritten(nameOf(each))),
      () => {
        setIsSending(false);
        setAnswers(answers);
      },
    );
  };

  const position = cards.length > 1 && (
    <span className={styles.position}>
      <IconButton
        label="Previous question"
        icon={ChevronLeft}
        size="small"
        disabled={shown === 0}
        onClick={() => show(shown - 1)}
      />
      <span role="status">
        {shown + 1} of {cards.length}
      </span>
      <IconButton
        label="Next question"
        icon={ChevronRight}
        size="small"
        disabled={shown === cards.length - 1}
        onClick={() => show(shown + 1)}
      />
    </span>
  );
  return (
    <fieldset className={styles.cards} disabled={isSending || isClosed}>
      <legend className="unseen">{isSending ? "Sending the answer" : "Answer"}</legend>
      {cards.map((card, index) => {
        if (!visited.has(index)) return null;
        const place: CardPlace = {
          isShown: index === shown,
          takesFocus: hasMoved && index === shown,
          position,
          decided: isSending ? undefined : answers.get(index)?.words,
          showsKeys,
        };
        const onDecide = (answer: CardAnswer): void => decide(index, answer);
        return (
          <QuestionName key={index} value={nameOf(index)}>
            {card.kind === "action" ? (
              <ActionForm card={card} place={place} onAnswer={onDecide} />
            ) : (
              <TextForm card={card} place={place} onAnswer={onDecide} />
            )}
          </QuestionName>
        );
      })}
    </fieldset>
  );
};
