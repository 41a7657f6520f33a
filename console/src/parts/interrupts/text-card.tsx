import { useId, useState } from "react";
import { truncate } from "../../design/truncate.ts";
import { JsonView } from "../json.tsx";
import type { AnswerOption, CardAnswer, TextCard } from "./card.ts";
import { CardFrame, KeyHint, type CardPlace } from "./card-frame.tsx";
import { Description } from "./description.tsx";
import { GrowingText } from "./growing-text.tsx";
import { JsonAnswer, wordsOf, type WrittenJson } from "./json-answer.tsx";
import { TextDifference } from "./text-difference.tsx";
import { useWritten } from "./written.ts";
import styles from "./interrupts.module.css";

type Kind = "draft" | "text" | "json";

const NEXT: Readonly<Record<Kind, string>> = {
  draft: "Back to the draft",
  text: "Answer with a text",
  json: "Answer with JSON",
};

interface TextFormProps {
  card: TextCard;
  place: CardPlace;
  onAnswer(answer: CardAnswer): void;
}

/** Boxes start empty and cannot be sent empty, so no click gives consent by accident. */
export const TextForm = ({ card, place, onAnswer }: TextFormProps) => {
  const { title, draft, options } = card;
  const [kind, setKind] = useWritten<Kind>("kind", draft === undefined ? "text" : "draft");
  const [text, setText] = useWritten("text", "");
  const [edited, setEdited] = useWritten("draft", draft ?? "");
  const [json, setJson] = useState<WrittenJson>();
  const id = useId();
  const isEdited = kind === "draft" && edited !== draft;
  const send = (value: unknown): void => onAnswer({ value, words: `Answered ${wordsOf(value)}` });
  const choose = (next: Kind): void => {
    setKind(next);
    setText("");
    setJson(undefined);
  };
  const sendDraft = (): void =>
    onAnswer({ value: edited, words: isEdited ? "Sent the edited draft" : "Sent the draft" });
  const isWritten = kind === "text" ? text.trim() !== "" : kind === "json" && json !== undefined;
  const sendWritten = (): void => {
    if (isEdited && edited.trim() !== "") sendDraft();
    else if (isWritten) send(kind === "text" ? text : json?.json);
  };
  const others = (["draft", "text", "json"] as const).filter(
    (each) => each !== kind && (each !== "draft" || draft !== undefined),
  );
  const areInFooter = isFew(options);
  const buttons = <OptionButtons options={options} isDisabled={isEdited} place={place} onAnswer={send} />;
  return (
    <CardFrame
      place={place}
      name={title}
      title={title}
      onSendWritten={sendWritten}
      footer={
        <>
          {areInFooter && buttons}
          {kind === "draft" ? (
            (isEdited || options.length === 0) && (
              <button type="button" className="primary" disabled={edited.trim() === ""} onClick={sendDraft}>
                {isEdited ? "Send the edited draft" : "Send the draft as it is"}
              </button>
            )
          ) : (
            <button type="button" className="primary" disabled={!isWritten} onClick={sendWritten}>
              Answer
            </button>
          )}
          {isEdited ? (
            <button type="button" className="plain" onClick={() => setEdited(draft ?? "")}>
              Undo the changes
            </button>
          ) : (
            <span className={styles.other}>
              {others.map((each) => (
                <button key={each} type="button" className="plain" onClick={() => choose(each)}>
                  {NEXT[each]}
                </button>
              ))}
            </span>
          )}
        </>
      }
    >
      {card.description !== undefined && <Description text={card.description} />}
      {card.details !== undefined && <JsonView value={card.details} depth={2} />}
      {!areInFooter && buttons}
      {kind === "json" ? (
        <JsonAnswer onChange={setJson} />
      ) : (
        <div className={styles.field} data-part="answer">
          <label htmlFor={id}>{kind === "draft" ? "Draft" : "Answer"}</label>
          {kind === "draft" ? (
            <GrowingText id={id} text={edited} rows={3} isOnDemand onChange={setEdited} />
          ) : (
            <GrowingText id={id} text={text} onChange={setText} />
          )}
        </div>
      )}
      {kind === "draft" && <TextDifference name="the draft" before={draft ?? ""} after={edited} />}
    </CardFrame>
  );
};

/** So many that their buttons would cover the card. */
const FEW_OPTIONS = 4;
const FEW_CHARACTERS = 60;

const isFew = (options: readonly AnswerOption[]): boolean =>
  options.length <= FEW_OPTIONS &&
  options.reduce((length, { label }) => length + label.length, 0) <= FEW_CHARACTERS;

const OPTIONS_SHOWN = 20;
const CHARACTERS_SHOWN = 80;
const CONSENT = /^(approve|accept)$/i;

interface OptionButtonsProps {
  options: readonly AnswerOption[];
  isDisabled: boolean;
  place: CardPlace;
  onAnswer(response: unknown): void;
}

const OptionButtons = ({ options, isDisabled, place, onAnswer }: OptionButtonsProps) => {
  const [isWhole, setIsWhole] = useState(false);
  if (options.length === 0) return null;
  const [consent, another] = options.filter(({ label }) => CONSENT.test(label));
  const hasKey = (option: AnswerOption): boolean => another === undefined && option === consent;
  return (
    <div className={styles.options} role="group" aria-label="Options">
      {options.slice(0, isWhole ? undefined : OPTIONS_SHOWN).map((option, index) => (
        <button
          key={index}
          type="button"
          disabled={isDisabled}
          title={isDisabled ? "Undo the changes to choose an option" : undefined}
          data-act={hasKey(option) ? "accept" : undefined}
          aria-keyshortcuts={place.showsKeys && hasKey(option) ? "A" : undefined}
          onClick={() => onAnswer(option.answer)}
        >
          {truncate(option.label, CHARACTERS_SHOWN)}
          <KeyHint keys="A" isShown={place.showsKeys && hasKey(option)} />
        </button>
      ))}
      {!isWhole && options.length > OPTIONS_SHOWN && (
        <button type="button" className="plain" onClick={() => setIsWhole(true)}>
          {`Show all ${options.length.toLocaleString("en")} options`}
        </button>
      )}
    </div>
  );
};
