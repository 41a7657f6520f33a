import type { Interrupt } from "@langchain/langgraph-sdk";
import { useState } from "react";
import { ActionForm } from "./action-form.tsx";
import { FreeAnswer } from "./free-answer.tsx";
import { actionQuestion } from "./interrupt-requests.ts";
import type { ThreadRecord } from "./thread-record.ts";
import styles from "./interrupt.module.css";

interface InterruptPanelProps {
  record: ThreadRecord | null | undefined;
  next: readonly string[];
  onAnswer(responses: Record<string, unknown>): Promise<void>;
  onContinue(): Promise<void>;
}

export const interruptsOf = (record: ThreadRecord | null | undefined): readonly Interrupt[] =>
  record?.status === "interrupted" ? Object.values(record.interrupts ?? {}).flat() : [];

/** A thread stopped at a breakpoint only has a button. */
export const InterruptPanel = ({ record, next, onAnswer, onContinue }: InterruptPanelProps) => {
  const interrupts = interruptsOf(record);
  if (interrupts.length > 0)
    // A draft does not answer other interrupts.
    return (
      <Questions
        key={`${record?.state_updated_at ?? ""}${interrupts.length}`}
        interrupts={interrupts}
        onAnswer={onAnswer}
      />
    );
  if (next.length === 0 || (record?.status !== "interrupted" && record?.status !== "idle")) return null;
  return (
    <p className="notice row">
      The graph has stopped before {next.join(", ")}.
      <button type="button" onClick={() => void onContinue().catch(() => undefined)}>
        Continue
      </button>
    </p>
  );
};

const Questions = ({
  interrupts,
  onAnswer,
}: {
  interrupts: readonly Interrupt[];
  onAnswer: InterruptPanelProps["onAnswer"];
}) => {
  const [answers, setAnswers] = useState<ReadonlyMap<string, unknown>>(new Map());
  const [isSending, setIsSending] = useState(false);
  const answer = (id: string, response: unknown): void => {
    const all = new Map(answers).set(id, response);
    setAnswers(all);
    if (all.size < interrupts.length) return;
    setIsSending(true);
    // The first answer alone would start a run without the others.
    onAnswer(Object.fromEntries(all)).catch(() => {
      setIsSending(false);
      setAnswers(new Map());
    });
  };
  const takeBack = (id: string): void => {
    const others = new Map(answers);
    others.delete(id);
    setAnswers(others);
  };
  return (
    <section className={styles.questions} aria-label="The graph waits for an answer" tabIndex={0}>
      {interrupts.map(({ id = "", value }, index) => (
        <fieldset key={id || index} className={styles.question} disabled={isSending}>
          <legend>
            The graph waits for an answer
            {interrupts.length > 1 ? ` (${index + 1} of ${interrupts.length})` : ""}
          </legend>
          {answers.has(id) && !isSending ? (
            <p className="row">
              Answered. The graph continues when all are answered.
              <button type="button" onClick={() => takeBack(id)}>
                Change
              </button>
            </p>
          ) : (
            <Question value={value} onAnswer={(response) => answer(id, response)} />
          )}
        </fieldset>
      ))}
    </section>
  );
};

const Question = ({ value, onAnswer }: { value: unknown; onAnswer(response: unknown): void }) => {
  const question = actionQuestion(value);
  return question === undefined ? (
    <FreeAnswer value={value} onAnswer={onAnswer} />
  ) : (
    <ActionForm question={question} onAnswer={onAnswer} />
  );
};
