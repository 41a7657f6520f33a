export type Decision = "accept" | "edit" | "respond" | "ignore";

export interface ActionAnswer {
  decision: Decision;
  /** Only of `edit`. */
  args?: Record<string, unknown>;
  /** Only of `respond`. */
  text?: string;
}

export interface ActionWords {
  /** Of the buttons. */
  labels: Readonly<Record<Decision, string>>;
  /** What was decided, e.g. `Approved`. */
  past: Readonly<Record<Decision, string>>;
  /** The box for a text that goes with `respond`. */
  text: string;
  /** Whether `respond` requires a text. */
  needsText: boolean;
}

/** An action that waits for a decision. */
export interface ActionCard {
  kind: "action";
  /** Undefined: the action's name is the title. */
  title: string | undefined;
  action: string;
  args: Record<string, unknown>;
  /** Markdown. */
  description: string | undefined;
  allowed: readonly Decision[];
  words: ActionWords;
  /** Whether the graph may expect an answer that no button has. */
  isOpen: boolean;
  answerOf(answer: ActionAnswer): unknown;
}

export interface AnswerOption {
  label: string;
  /** The value for the graph. */
  answer: unknown;
}

/** A question that is answered by an option, a text or JSON. */
export interface TextCard {
  kind: "text";
  title: string;
  /** Markdown. */
  description: string | undefined;
  /** What is left of the value; undefined if nothing is. */
  details: unknown;
  /** A text to send as it is or edited. */
  draft: string | undefined;
  options: readonly AnswerOption[];
}

export type Card = ActionCard | TextCard;

/** The value of one interrupt. */
export interface Question {
  cards: readonly Card[];
  /** The value for the graph, from the values of all cards. */
  answerOf(values: readonly unknown[]): unknown;
}

export interface CardAnswer {
  value: unknown;
  /** For the person, e.g. `Approved send_email`. */
  words: string;
}
