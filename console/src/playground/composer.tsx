import {
  lazy,
  Suspense,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
} from "react";
import { JsonEditor } from "../parts/json.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { attach, humanMessage, readImages, writtenIn, type Attachment } from "./attachments.ts";
import type { Input } from "./live-thread.ts";
import { exampleOf, modesOf, type InputSchema, type Mode } from "./input-schema.ts";
import { faultOfMessages } from "./messages.ts";
import styles from "./composer.module.css";

interface ComposerProps {
  schema: InputSchema | null | undefined;
  isRunning: boolean;
  /** If `onSend` rejects, the input stays. */
  onSend(input: Input): Promise<void>;
  onStop(): void;
  /** A rejected input. Another one needs another `key`. */
  returned?: Input | undefined;
}

const useSendOnce = (onSend: ComposerProps["onSend"]) => {
  const isSending = useRef(false);
  return (input: Input): void => {
    if (isSending.current) return;
    isSending.current = true;
    const isDone = (): void => void (isSending.current = false);
    onSend(input).then(isDone, isDone);
  };
};

/** The second click of a double click. */
const isRepeated = ({ detail }: { detail: number }): boolean => detail > 1;

export const Composer = ({ schema, isRunning, onSend, onStop, returned }: ComposerProps) => {
  const modes = modesOf(schema);
  const written = useMemo(() => returned && writtenIn(returned), [returned]);
  const [chosen, setChosen] = useState<Mode | undefined>(
    returned === undefined ? undefined : written === undefined ? "JSON" : "Message",
  );
  const mode = modes.find((one) => one === chosen) ?? modes[0] ?? "JSON";
  const stop = isRunning && (
    <button type="button" className="danger" onClick={onStop}>
      Stop
    </button>
  );
  return (
    <section className={styles.composer} aria-label="Input">
      {mode === "Message" ? (
        <MessageInput isRunning={isRunning} onSend={onSend} written={written}>
          {stop}
        </MessageInput>
      ) : mode === "Form" ? (
        <FormInput schema={schema} isRunning={isRunning} onSend={onSend}>
          {stop}
        </FormInput>
      ) : (
        <JsonInput schema={schema} isRunning={isRunning} onSend={onSend} written={returned}>
          {stop}
        </JsonInput>
      )}
      {modes.length > 1 && (
        <div className={styles.modes} role="group" aria-label="Kind of input">
          {modes.map((one) => (
            <button
              key={one}
              type="button"
              className="plain"
              aria-pressed={one === mode}
              onClick={() => setChosen(one)}
            >
              {one}
            </button>
          ))}
        </div>
      )}
    </section>
  );
};

interface InputProps {
  isRunning: boolean;
  onSend(input: Input): Promise<void>;
  children: ReactNode;
}

interface MessageInputProps extends InputProps {
  written: { text: string; attached: readonly Attachment[] } | undefined;
}

const MessageInput = ({ isRunning, onSend, written, children }: MessageInputProps) => {
  const [text, setText] = useState(written?.text ?? "");
  const [attached, setAttached] = useState<readonly Attachment[]>(written?.attached ?? []);
  const latest = useRef(attached);
  useLayoutEffect(() => {
    latest.current = attached;
  }, [attached]);
  const [fault, setFault] = useState<unknown>();
  const files = useRef<HTMLInputElement>(null);
  const id = useId();
  const isEmpty = text.trim() === "" && attached.length === 0;
  const [reading, setReading] = useState(0);
  const isReady = !isEmpty && reading === 0;

  const send = (): void => {
    if (!isReady) return;
    setFault(undefined);
    setText("");
    setAttached([]);
    onSend({ messages: [humanMessage(text.trim(), attached)] }).catch(() => {
      // The conversation shows the error, and the user keeps the text.
      setText((now) => (now === "" ? text : now));
      setAttached((now) => (now.length === 0 ? attached : now));
    });
  };
  const take = (chosen: readonly File[]): void => {
    if (chosen.length === 0) return;
    setFault(undefined);
    setReading((count) => count + 1);
    readImages(chosen)
      .then((images) => {
        latest.current = attach(latest.current, images);
        setAttached(latest.current);
      })
      .catch(setFault)
      .finally(() => setReading((count) => count - 1));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    // During IME composition Enter accepts the word.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <ErrorNotice error={fault} />
      {attached.length > 0 && (
        <ul className={styles.attached} aria-label="Images to send">
          {attached.map(({ name, mimeType, data }, index) => (
            <li key={index}>
              <img src={`data:${mimeType};base64,${data}`} alt={name} />
              <button
                type="button"
                aria-label={`Remove ${name}`}
                onClick={() => setAttached(attached.filter((_, position) => position !== index))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      <label htmlFor={id} className="unseen">
        Message
      </label>
      <textarea
        id={id}
        className={styles.text}
        rows={2}
        placeholder="Write a message. Enter sends, Shift+Enter makes a new line."
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={onKeyDown}
        onPaste={({ clipboardData }) => take([...clipboardData.files])}
      />
      <div className={styles.buttons}>
        <input
          ref={files}
          type="file"
          accept="image/*"
          multiple
          hidden
          aria-label="Images"
          onChange={({ target }) => {
            take([...(target.files ?? [])]);
            target.value = "";
          }}
        />
        <button type="button" onClick={() => files.current?.click()}>
          Add an image
        </button>
        <span className={styles.gap} />
        {children}
        <button type="submit" className="primary" disabled={!isReady}>
          {isRunning ? "Send next" : "Send"}
        </button>
      </div>
    </form>
  );
};

/** Loaded on demand, because it is large. */
const SchemaForm = lazy(async () => ({ default: (await import("../parts/schema-form.tsx")).SchemaForm }));

const FormInput = ({ schema, isRunning, onSend, children }: InputProps & Pick<ComposerProps, "schema">) => {
  const send = useSendOnce(onSend);
  const [value, setValue] = useState<unknown>({});
  const [isValid, setIsValid] = useState(true);
  return (
    <div className="stack">
      <div className={styles.form}>
        <Suspense fallback={<p className="faint">Loading…</p>}>
          <SchemaForm
            schema={schema}
            value={value}
            label="Input"
            onChange={(changed, validity) => {
              setValue(changed);
              setIsValid(validity.valid);
            }}
          />
        </Suspense>
      </div>
      <div className={styles.buttons}>
        <span className={styles.gap} />
        {children}
        <button
          type="button"
          className="primary"
          disabled={!isValid}
          onClick={(event) => !isRepeated(event) && send(value as Input)}
        >
          {isRunning ? "Send next" : "Send"}
        </button>
      </div>
    </div>
  );
};

interface JsonInputProps extends InputProps, Pick<ComposerProps, "schema"> {
  written: Input | undefined;
}

const JsonInput = ({ schema, isRunning, onSend, written: before, children }: JsonInputProps) => {
  const send = useSendOnce(onSend);
  const [initial] = useState(() => before ?? exampleOf(schema));
  const [written, setWritten] = useState<{ json: unknown } | undefined>({ json: initial });
  const [fault, setFault] = useState<string>();
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (written === undefined) return;
        const wrong = faultOfMessages(written.json, schema?.properties?.["messages"]);
        setFault(wrong);
        if (wrong === undefined) send(written.json as Input);
      }}
    >
      <ErrorNotice error={fault} />
      <JsonEditor label="Input as JSON" initial={initial} onChange={setWritten} rows={6} />
      <div className={styles.buttons}>
        <span className={styles.gap} />
        {children}
        <button
          type="submit"
          className="primary"
          disabled={written === undefined}
          onClick={(event) => isRepeated(event) && event.preventDefault()}
        >
          {isRunning ? "Send next" : "Send"}
        </button>
      </div>
    </form>
  );
};
