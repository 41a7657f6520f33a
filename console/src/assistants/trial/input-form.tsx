import { useId } from "react";
import { Chip } from "../../design/chip.tsx";
import { ValueEditor } from "../../parts/value-editor.tsx";
import { inputOf, takesMessages, valueOf, writtenFrom, type Schema, type Written } from "./written.ts";
import styles from "./trial.module.css";

interface InputFormProps {
  schema: Schema;
  written: Written;
  onChange(written: Written): void;
}

/** A box for a message, or the form of the graph's input schema. */
export const InputForm = ({ schema, written, onChange }: InputFormProps) => {
  const id = useId();
  const toMessage = (): void => {
    const same = written.kind === "value" ? writtenFrom(written.value) : written;
    onChange(same.kind === "message" ? same : { kind: "message", text: "" });
  };
  return (
    <div className="stack">
      {takesMessages(schema) && (
        <div className="row" role="group" aria-label="Kind of input">
          <Chip isOn={written.kind === "message"} onToggle={toMessage}>
            Message
          </Chip>
          <Chip
            isOn={written.kind === "value"}
            onToggle={() => onChange(valueOf(inputOf(written)?.input ?? {}))}
          >
            Whole input
          </Chip>
        </div>
      )}
      {written.kind === "message" ? (
        <div className={styles.field}>
          <label htmlFor={id}>Message</label>
          <textarea
            id={id}
            rows={3}
            value={written.text}
            onChange={({ target }) => onChange({ kind: "message", text: target.value })}
          />
        </div>
      ) : (
        <ValueEditor
          label="Input"
          schema={schema ?? {}}
          value={written.value}
          onChange={(value, validity) => onChange({ kind: "value", value, validity })}
        />
      )}
    </div>
  );
};
