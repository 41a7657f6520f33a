import { lazy, Suspense, useRef, useState } from "react";
import { Skeleton } from "../../design/skeleton.tsx";
import { JsonEditor } from "../../parts/json.tsx";
import { ErrorNotice } from "../../parts/notice.tsx";
import { SendRow, type InputProps } from "./send-row.tsx";
import type { Input } from "./input.ts";
import { exampleOf, type InputSchema } from "./input-schema.ts";
import { faultOfMessages } from "../messages/messages.ts";
import styles from "./composer.module.css";

interface ValueInputProps extends InputProps {
  schema: InputSchema | null | undefined;
}

const useSendOnce = (onSend: InputProps["onSend"]) => {
  const isSending = useRef(false);
  return (input: Input): void => {
    if (isSending.current) return;
    isSending.current = true;
    const isDone = (): void => void (isSending.current = false);
    onSend(input).then(isDone, isDone);
  };
};

/** Loaded on demand, because it is large. */
const SchemaForm = lazy(async () => ({ default: (await import("../../parts/schema-form.tsx")).SchemaForm }));

export const FormInput = ({ schema, onSend, ...row }: ValueInputProps) => {
  const send = useSendOnce(onSend);
  const [value, setValue] = useState<unknown>({});
  const [isValid, setIsValid] = useState(true);
  return (
    <div className={styles.input}>
      <div className={styles.form}>
        <Suspense fallback={<Skeleton lines={2} />}>
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
      <SendRow {...row} isDisabled={!isValid} onClick={() => send(value as Input)} />
    </div>
  );
};

export const JsonInput = ({ schema, onSend, ...row }: ValueInputProps) => {
  const send = useSendOnce(onSend);
  const [initial] = useState(() => exampleOf(schema));
  const [written, setWritten] = useState<{ json: unknown } | undefined>({ json: initial });
  const [fault, setFault] = useState<string>();
  return (
    <form
      className={styles.input}
      onSubmit={(event) => {
        event.preventDefault();
        if (written === undefined) return;
        const wrong = faultOfMessages(written.json, schema?.properties?.["messages"]);
        setFault(wrong);
        if (wrong === undefined) send(written.json as Input);
      }}
    >
      <ErrorNotice error={fault} />
      <div className={styles.form}>
        <JsonEditor label="Input as JSON" initial={initial} onChange={setWritten} rows={6} />
      </div>
      <SendRow {...row} isDisabled={written === undefined} />
    </form>
  );
};
