import { Square } from "lucide-react";
import { useState } from "react";
import type { Input } from "./input.ts";
import { modesOf, type InputSchema, type Mode } from "./input-schema.ts";
import { MessageInput, type MessageInputProps } from "./message-input.tsx";
import { FormInput, JsonInput } from "./value-inputs.tsx";
import styles from "./composer.module.css";

interface ComposerProps extends Pick<MessageInputProps, "draftName" | "takesFocus" | "recall"> {
  schema: InputSchema | null | undefined;
  isRunning: boolean;
  /** If `onSend` rejects, the input stays. */
  onSend(input: Input): Promise<void>;
  onStop(): void;
}

/** Message, form or JSON in one box, whose last row is the same for all. */
export const Composer = ({ schema, isRunning, onSend, onStop, ...message }: ComposerProps) => {
  const modes = modesOf(schema);
  const [chosen, setChosen] = useState<Mode>();
  const mode = modes.find((one) => one === chosen) ?? modes[0] ?? "JSON";
  const kinds = modes.length > 1 && (
    <div className={styles.modes} role="group" aria-label="Kind of input">
      {modes.map((one) => (
        <button
          key={one}
          type="button"
          className="plain small"
          aria-pressed={one === mode}
          onClick={() => setChosen(one)}
        >
          {one}
        </button>
      ))}
    </div>
  );
  const stop = isRunning && (
    <button type="button" className={styles.stop} onClick={onStop}>
      <Square aria-hidden size={12} fill="currentColor" />
      Stop
    </button>
  );
  const input = { isRunning, onSend, kinds, stop };
  return (
    <section className={styles.composer} aria-label="Input">
      {mode === "Message" ? (
        <MessageInput {...input} {...message} />
      ) : mode === "Form" ? (
        <FormInput {...input} schema={schema} />
      ) : (
        <JsonInput {...input} schema={schema} />
      )}
    </section>
  );
};
