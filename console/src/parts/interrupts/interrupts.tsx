import type { Interrupt } from "@langchain/langgraph-sdk";
import { useQueryClient } from "@tanstack/react-query";
import { WAITING_KEY } from "../waiting-threads.ts";
import { QuestionCards } from "./question-cards.tsx";
import styles from "./interrupts.module.css";

export { QuestionCards };

/** What the cards need to know of a thread. */
export interface WaitingThread {
  thread_id: string;
  status: string;
  state_updated_at?: string;
  interrupts?: Record<string, Interrupt[]> | null;
}

interface InterruptPanelProps {
  record: WaitingThread | null | undefined;
  next: readonly string[];
  onAnswer(responses: Record<string, unknown>): Promise<void>;
  onContinue(): Promise<void>;
}

export const interruptsOf = (
  record: Omit<WaitingThread, "thread_id"> | null | undefined,
): readonly Interrupt[] =>
  record?.status === "interrupted" ? Object.values(record.interrupts ?? {}).flat() : [];

/** Changes when other questions wait: a draft does not answer them. */
export const questionsKey = (record: WaitingThread | null | undefined): string =>
  `${record?.state_updated_at ?? ""} ${interruptsOf(record).length}`;

/** The questions of a thread. A thread that stopped at a breakpoint only has a button. */
export const InterruptPanel = ({ record, next, onAnswer, onContinue }: InterruptPanelProps) => {
  const queries = useQueryClient();
  const interrupts = interruptsOf(record);
  const key = questionsKey(record);
  if (interrupts.length > 0)
    return (
      <section className={styles.panel} aria-label="The graph waits for an answer" tabIndex={0}>
        <QuestionCards
          key={key}
          interrupts={interrupts}
          name={`${record?.thread_id ?? ""} ${record?.state_updated_at ?? ""}`}
          onAnswer={async (responses) => {
            await onAnswer(responses);
            void queries.invalidateQueries({ queryKey: WAITING_KEY });
          }}
        />
      </section>
    );
  if (next.length === 0 || (record?.status !== "interrupted" && record?.status !== "idle")) return null;
  return <Breakpoint next={next} onContinue={onContinue} />;
};

export const Breakpoint = ({ next, onContinue }: Pick<InterruptPanelProps, "next" | "onContinue">) => (
  <p className="notice row">
    The graph has stopped before {next.join(", ")}.
    <button type="button" onClick={() => void onContinue().catch(() => undefined)}>
      Continue
    </button>
  </p>
);

/** Presses the button of the shown card that accepts. False if there is none. */
export const pressAccept = (within: ParentNode | null): boolean => {
  const button = within?.querySelector<HTMLButtonElement>(
    "[data-card]:not([hidden]) [data-act=accept]:not(:disabled)",
  );
  button?.click();
  return button != null;
};

/** Moves the focus into the shown card. */
export const focusCard = (within: ParentNode | null, part: "answer" | "argument" | "card"): void => {
  const card = within?.querySelector<HTMLElement>("[data-card]:not([hidden])");
  const field = card?.querySelector<HTMLElement>(`[data-part=${part}] :is(textarea, input)`);
  (field ?? (part === "card" ? card : undefined))?.focus();
};
