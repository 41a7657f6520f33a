import { useId, useState } from "react";
import { ArgumentField } from "./argument-field.tsx";
import type { ActionAnswer, ActionCard, CardAnswer } from "./card.ts";
import { CardFrame, KeyHint, type CardPlace } from "./card-frame.tsx";
import { Description } from "./description.tsx";
import { GrowingText } from "./growing-text.tsx";
import { JsonAnswer, wordsOf, type WrittenJson } from "./json-answer.tsx";
import { useWritten } from "./written.ts";
import styles from "./interrupts.module.css";

const ARGUMENTS_SHOWN = 40;
const NONE: [name: string, value: unknown][] = [];

interface ActionFormProps {
  card: ActionCard;
  place: CardPlace;
  onAnswer(answer: CardAnswer): void;
}

export const ActionForm = ({ card, place, onAnswer }: ActionFormProps) => {
  const { action, args, allowed, words } = card;
  const [changes, setChanges] = useWritten<[name: string, value: unknown][]>("arguments", NONE);
  const changed = new Map(changes);
  const [round, setRound] = useState(0);
  const [text, setText] = useWritten("text", "");
  const [isJson, setIsJson] = useState(false);
  const [json, setJson] = useState<WrittenJson>();
  const mayEdit = allowed.includes("edit");
  const [invalid, setInvalid] = useState<ReadonlySet<string>>(new Set());
  const hasFault = invalid.size > 0;
  const isEdited = changed.size > 0 || hasFault;

  const change = (name: string, value: unknown): void => {
    const next = new Map(changed).set(name, value);
    if (value === undefined || value === args[name]) next.delete(name);
    const faults = new Set(invalid).add(name);
    if (value !== undefined) faults.delete(name);
    setInvalid(faults);
    setChanges([...next]);
  };
  const undo = (): void => {
    setChanges(NONE);
    setInvalid(new Set());
    setRound(round + 1);
  };
  const decide = (answer: ActionAnswer): void =>
    onAnswer({ value: card.answerOf(answer), words: `${words.past[answer.decision]} ${action}` });
  const sendEdited = (): void =>
    decide({ decision: "edit", args: Object.fromEntries([...Object.entries(args), ...changed]) });
  const respond = (): void => decide({ decision: "respond", text: text.trim() });
  const sendJson = (): void => {
    if (json !== undefined) onAnswer({ value: json.json, words: `Answered ${wordsOf(json.json)}` });
  };
  const onSendWritten = (): void => {
    if (isJson) return sendJson();
    if (isEdited) return hasFault ? undefined : sendEdited();
    if (text.trim() !== "" && allowed.includes("respond")) respond();
  };

  const buttons = isJson ? (
    <button type="button" className="primary" disabled={json === undefined} onClick={sendJson}>
      Answer
    </button>
  ) : (
    <>
      {isEdited ? (
        <>
          <button type="button" className="primary" disabled={hasFault} onClick={sendEdited}>
            {words.labels.edit}
          </button>
          <button type="button" className="plain" onClick={undo}>
            Undo the changes
          </button>
        </>
      ) : (
        allowed.includes("accept") && (
          <button
            type="button"
            className="primary"
            data-act="accept"
            aria-keyshortcuts={place.showsKeys ? "A" : undefined}
            onClick={() => decide({ decision: "accept" })}
          >
            {words.labels.accept} <KeyHint keys="A" isShown={place.showsKeys} />
          </button>
        )
      )}
      {allowed.includes("respond") && (
        <button type="button" disabled={words.needsText && text.trim() === ""} onClick={respond}>
          {words.labels.respond}
        </button>
      )}
      {allowed.includes("ignore") && (
        <button type="button" onClick={() => decide({ decision: "ignore" })}>
          {words.labels.ignore}
        </button>
      )}
    </>
  );
  return (
    <CardFrame
      place={place}
      name={action}
      title={card.title ?? <code>{action}</code>}
      onSendWritten={onSendWritten}
      footer={
        <>
          {buttons}
          {card.isOpen && (
            <button type="button" className={`plain ${styles.other}`} onClick={() => setIsJson(!isJson)}>
              {isJson ? `Back to ${words.labels.accept}` : "Answer with JSON"}
            </button>
          )}
        </>
      }
    >
      {card.title !== undefined && <code>{action}</code>}
      {card.description !== undefined && <Description text={card.description} />}
      <Arguments
        key={round}
        args={args}
        changed={changed}
        isReadOnly={!mayEdit || isJson}
        onChange={change}
      />
      {isJson && <JsonAnswer onChange={setJson} />}
      {!isJson && allowed.includes("respond") && (
        <ResponseBox label={words.text} text={text} onChange={setText} />
      )}
    </CardFrame>
  );
};

const Arguments = ({
  args,
  changed,
  isReadOnly,
  onChange,
}: {
  args: Record<string, unknown>;
  changed: ReadonlyMap<string, unknown>;
  isReadOnly: boolean;
  onChange(name: string, value: unknown): void;
}) => {
  const [isWhole, setIsWhole] = useState(false);
  const entries = Object.entries(args);
  return (
    <div className={styles.fields} data-part="argument">
      {entries.slice(0, isWhole ? undefined : ARGUMENTS_SHOWN).map(([name, value]) => (
        <ArgumentField
          key={name}
          name={name}
          value={value}
          written={changed.get(name) ?? value}
          isReadOnly={isReadOnly}
          onChange={(next) => onChange(name, next)}
        />
      ))}
      {!isWhole && entries.length > ARGUMENTS_SHOWN && (
        <div className="row">
          <button type="button" className="small" onClick={() => setIsWhole(true)}>
            {`Show all ${entries.length.toLocaleString("en")} arguments`}
          </button>
        </div>
      )}
    </div>
  );
};

const ResponseBox = ({
  label,
  text,
  onChange,
}: {
  label: string;
  text: string;
  onChange(text: string): void;
}) => {
  const id = useId();
  return (
    <div className={styles.field} data-part="answer">
      <label htmlFor={id}>{label}</label>
      <GrowingText id={id} text={text} rows={1} onChange={onChange} />
    </div>
  );
};
