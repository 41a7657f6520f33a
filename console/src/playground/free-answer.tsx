import { useId, useState } from "react";
import { JsonEditor, JsonView } from "../parts/json.tsx";
import { truncate } from "../design/truncate.ts";
import { optionsOf, type AnswerOption } from "./interrupt-requests.ts";
import { PlainText } from "./markdown.tsx";
import styles from "./interrupt.module.css";

interface FreeAnswerProps {
  value: unknown;
  onAnswer(response: unknown): void;
}

/**
 * For an interrupt of unknown shape. Fields start empty and cannot be sent empty, so no click gives consent
 * by accident.
 */
export const FreeAnswer = ({ value, onAnswer }: FreeAnswerProps) => {
  const [kind, setKind] = useState<"Text" | "JSON">(typeof value === "string" ? "Text" : "JSON");
  const [text, setText] = useState("");
  const [written, setWritten] = useState<{ json: unknown }>();
  const field = useId();
  const switchKind = (): void => {
    setKind(kind === "Text" ? "JSON" : "Text");
    setText("");
    setWritten(undefined);
  };
  return (
    <div className="stack">
      {typeof value === "string" ? <PlainText text={value} /> : <JsonView value={value} depth={2} />}
      <OptionButtons options={optionsOf(value)} onAnswer={onAnswer} />
      {kind === "Text" ? (
        <div className="stack">
          <label htmlFor={field}>Answer</label>
          <textarea id={field} rows={2} value={text} onChange={({ target }) => setText(target.value)} />
        </div>
      ) : (
        <JsonEditor label="Answer as JSON" initial={undefined} rows={3} onChange={setWritten} />
      )}
      <div className="row">
        <button
          type="button"
          className="primary"
          disabled={kind === "Text" ? text.trim() === "" : written === undefined}
          onClick={() => onAnswer(kind === "Text" ? text : written?.json)}
        >
          Answer
        </button>
        <button type="button" className="plain" onClick={switchKind}>
          Answer with {kind === "Text" ? "JSON" : "a text"}
        </button>
      </div>
    </div>
  );
};

const OPTIONS_SHOWN = 20;
/** The value above contains the whole text. */
const CHARACTERS_SHOWN = 80;

const OptionButtons = ({
  options,
  onAnswer,
}: {
  options: readonly AnswerOption[];
  onAnswer: FreeAnswerProps["onAnswer"];
}) => {
  const [isWhole, setIsWhole] = useState(false);
  if (options.length === 0) return null;
  return (
    <div className={styles.options} role="group" aria-label="Options">
      {options.slice(0, isWhole ? undefined : OPTIONS_SHOWN).map(({ label, answer }, index) => (
        <button key={index} type="button" onClick={() => onAnswer(answer)}>
          {truncate(label, CHARACTERS_SHOWN)}
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
