import { isObject } from "../is-object.ts";
import { actionQuestion } from "./action-questions.ts";
import type { AnswerOption, Question, TextCard } from "./card.ts";

const answerOption = (option: unknown): AnswerOption | undefined => {
  if (typeof option === "string") return option.trim() === "" ? undefined : { label: option, answer: option };
  if (typeof option === "number" || typeof option === "boolean")
    return { label: String(option), answer: option };
  if (!isObject(option) || typeof option["label"] !== "string" || !("value" in option)) return undefined;
  return option["label"].trim() === "" ? undefined : { label: option["label"], answer: option["value"] };
};

/** Texts, numbers, booleans, or `{label, value}`. Empty if one has another shape. */
const optionsOf = (offered: unknown): readonly AnswerOption[] => {
  if (!Array.isArray(offered)) return [];
  const options = (offered as unknown[]).map(answerOption);
  return options.every((option) => option !== undefined) ? options : [];
};

const TITLE = "The graph waits for an answer";
/** A longer text is read as a description. */
const TITLE_CHARACTERS = 160;

const ASKING = ["title", "question", "prompt", "message", "instruction", "instructions"];
const EXPLAINING = ["description", "details"];
const DRAFTS = ["draft", "text", "content"];

const namedTexts = (value: Record<string, unknown>, keys: readonly string[]): [string, string][] =>
  keys.flatMap((key) => {
    const text = value[key];
    return typeof text === "string" && text.trim() !== "" ? [[key, text] as [string, string]] : [];
  });

const isTitle = (text: string): boolean => text.length <= TITLE_CHARACTERS && !text.includes("\n");

const textCard = (value: unknown): TextCard => {
  if (typeof value === "string")
    return {
      kind: "text",
      title: isTitle(value) && value.trim() !== "" ? value : TITLE,
      description: isTitle(value) ? undefined : value,
      details: undefined,
      draft: undefined,
      options: [],
    };
  const fields = isObject(value) ? value : {};
  const asking = namedTexts(fields, ASKING);
  const [first] = asking;
  // Without a question, nothing says that the text is a draft.
  const [draft] = first === undefined ? [] : namedTexts(fields, DRAFTS);
  const options = optionsOf(fields["options"]);
  const hasTitle = first !== undefined && isTitle(first[1]);
  const explaining = [...(hasTitle ? asking.slice(1) : asking), ...namedTexts(fields, EXPLAINING)];
  const shown = new Set(
    [...asking, ...explaining, ...(draft === undefined ? [] : [draft])].map(([key]) => key),
  );
  if (options.length > 0) shown.add("options");
  const rest = isObject(value)
    ? Object.fromEntries(Object.entries(value).filter(([key]) => !shown.has(key)))
    : value;
  return {
    kind: "text",
    title: hasTitle ? first[1] : TITLE,
    description: explaining.length === 0 ? undefined : explaining.map(([, text]) => text).join("\n\n"),
    details: isObject(rest) && Object.keys(rest).length === 0 ? undefined : (rest ?? null),
    draft: draft?.[1],
    options,
  };
};

/** Any value of `interrupt(…)` as cards. */
export const questionOf = (value: unknown): Question =>
  actionQuestion(value) ?? { cards: [textCard(value)], answerOf: ([answer]) => answer };
