import { useId, useMemo, useState } from "react";
import { JsonEditor } from "../parts/json.tsx";
import { LongText } from "../parts/long-text.tsx";
import { Markdown } from "./markdown.tsx";
import type { ActionAnswer, ActionQuestion, ActionRequest, Decision } from "./interrupt-requests.ts";
import styles from "./interrupt.module.css";

interface ActionFormProps {
  question: ActionQuestion;
  onAnswer(response: unknown): void;
}

/** Several actions are decided one by one and answered together. */
export const ActionForm = ({ question, onAnswer }: ActionFormProps) => {
  const [answers, setAnswers] = useState<ReadonlyMap<number, ActionAnswer>>(new Map());
  const { requests } = question;
  const decide = (index: number, answer: ActionAnswer): void => {
    const all = new Map(answers).set(index, answer);
    setAnswers(all);
    if (requests.every((_, index) => all.has(index)))
      onAnswer(question.answerOf(requests.map((_, index) => all.get(index) as ActionAnswer)));
  };
  return (
    <div className="stack">
      {requests.map((request, index) => (
        <ActionPart
          key={index}
          request={request}
          labels={question.labels}
          decided={answers.get(index)?.decision}
          onDecide={(answer) => decide(index, answer)}
        />
      ))}
    </div>
  );
};

interface ActionPartProps {
  request: ActionRequest;
  labels: Readonly<Record<Decision, string>>;
  decided: Decision | undefined;
  onDecide(answer: ActionAnswer): void;
}

const ActionPart = ({ request, labels, decided, onDecide }: ActionPartProps) => {
  const { action, args, description, allowed } = request;
  const [changed, setChanged] = useState<ReadonlyMap<string, unknown>>(new Map());
  const [text, setText] = useState("");
  const id = useId();
  const mayEdit = allowed.includes("edit");
  const mayRespond = allowed.includes("respond");
  const hasFault = [...changed.values()].some((value) => value === undefined);
  const edited = (): Record<string, unknown> => Object.fromEntries([...Object.entries(args), ...changed]);
  return (
    <div className={styles.action} role="group" aria-label={action}>
      <p>
        <strong>{action}</strong> {decided !== undefined && <span className="faint">{labels[decided]}</span>}
      </p>
      {description !== undefined && <Markdown text={description} />}
      {Object.entries(args).map(([name, value]) => (
        <Argument
          key={name}
          name={name}
          value={value}
          isReadOnly={!mayEdit}
          onChange={(next) => setChanged(new Map(changed).set(name, next))}
        />
      ))}
      {mayRespond && (
        <div className="stack">
          <label htmlFor={id}>{labels.respond === "Reject" ? "Reason (if you reject)" : "Response"}</label>
          <textarea id={id} rows={2} value={text} onChange={({ target }) => setText(target.value)} />
        </div>
      )}
      <div className="row">
        {allowed.includes("accept") && (
          <button
            type="button"
            className="primary"
            disabled={changed.size > 0 && mayEdit}
            onClick={() => onDecide({ decision: "accept" })}
          >
            {labels.accept}
          </button>
        )}
        {mayEdit && (
          <button
            type="button"
            disabled={hasFault || changed.size === 0}
            onClick={() => onDecide({ decision: "edit", args: edited() })}
          >
            {labels.edit === "Edit" ? "Send the edited arguments" : labels.edit}
          </button>
        )}
        {mayRespond && (
          <button
            type="button"
            disabled={labels.respond === "Respond" && text.trim() === ""}
            onClick={() => onDecide({ decision: "respond", text: text.trim() })}
          >
            {labels.respond}
          </button>
        )}
        {allowed.includes("ignore") && (
          <button type="button" className="plain" onClick={() => onDecide({ decision: "ignore" })}>
            {labels.ignore}
          </button>
        )}
      </div>
    </div>
  );
};

interface ArgumentProps {
  name: string;
  value: unknown;
  isReadOnly: boolean;
  /** Undefined while the text is not valid JSON. */
  onChange(value: unknown): void;
}

const CHARACTERS_SHOWN = 2_000;
/** The layout of a field of megabytes blocks the page. */
const EDITED_AT_MOST = 20_000;

const Argument = ({ name, value, isReadOnly, onChange }: ArgumentProps) => {
  const [isEditing, setIsEditing] = useState(false);
  const length = useMemo(
    () => (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).length,
    [value],
  );
  const isTooLong = !isReadOnly && !isEditing && length > EDITED_AT_MOST;
  return (
    <>
      <ArgumentField
        key={String(isTooLong)}
        name={name}
        value={value}
        isReadOnly={isReadOnly || isTooLong}
        onChange={onChange}
      />
      {isTooLong && (
        <div className="row">
          <button type="button" onClick={() => setIsEditing(true)}>
            {`Edit all ${length.toLocaleString("en")} characters of ${name}`}
          </button>
        </div>
      )}
    </>
  );
};

const ArgumentField = ({ name, value, isReadOnly, onChange }: ArgumentProps) => {
  const field = useId();
  const [text, setText] = useState(typeof value === "string" ? value : "");
  const rows = (shown: string): number => Math.min(6, Math.max(1, shown.split("\n", 6).length));
  if (typeof value === "string" && isReadOnly)
    return (
      <div className="stack">
        <label htmlFor={field}>{name}</label>
        <LongText text={value} characters={CHARACTERS_SHOWN}>
          {(shown) => <textarea id={field} rows={rows(shown)} readOnly value={shown} />}
        </LongText>
      </div>
    );
  if (typeof value === "string")
    return (
      <div className="stack">
        <label htmlFor={field}>{name}</label>
        <textarea
          id={field}
          rows={rows(text)}
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            onChange(target.value);
          }}
        />
      </div>
    );
  if (isReadOnly)
    return (
      <p>
        {name}{" "}
        <LongText text={JSON.stringify(value) ?? ""} characters={CHARACTERS_SHOWN}>
          {(shown) => <code>{shown}</code>}
        </LongText>
      </p>
    );
  return (
    <JsonEditor
      label={name}
      initial={value ?? null}
      rows={2}
      onChange={(written) => onChange(written === undefined ? undefined : written.json)}
    />
  );
};
