import { useId, useState, type FormEvent } from "react";
import { Dialog } from "../../design/dialog.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { useSchemas } from "../../parts/assistants.ts";
import { ErrorNotice } from "../../parts/notice.tsx";
import { InputForm } from "../trial/input-form.tsx";
import styles from "../trial/trial.module.css";
import { emptyFor, inputOf, writtenFrom, type Written } from "../trial/written.ts";
import { useSaveExample, type Example } from "./queries.ts";

interface ExampleDialogProps {
  graphId: string;
  /** Undefined: a new example. */
  example?: Example | undefined;
  /** The input of a new example. */
  input?: unknown;
  /** One of them may be taken as the expected answer. */
  answers?: readonly { version: number; answer: string }[];
  onClose(): void;
}

export const ExampleDialog = ({ graphId, example, input, answers = [], onClose }: ExampleDialogProps) => {
  const id = useId();
  const schemas = useSchemas(graphId);
  const [name, setName] = useState(example?.name ?? "");
  const [expected, setExpected] = useState(example?.expected ?? "");
  const given = example === undefined ? input : example.input;
  const [changed, setChanged] = useState<Written | undefined>(
    given === undefined ? undefined : writtenFrom(given),
  );
  const save = useSaveExample(graphId, onClose);
  const schema = schemas.data?.input_schema;
  const written = changed ?? emptyFor(schema);
  const sent = inputOf(written);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (sent === undefined || save.isPending) return;
    save.mutate({
      ...{ id: example?.id ?? crypto.randomUUID(), name: name.trim(), input: sent.input },
      expected: expected.trim() === "" ? undefined : expected,
      created_at: example?.created_at ?? new Date().toISOString(),
    });
  };
  return (
    <Dialog title={example === undefined ? "New example" : "Edit the example"} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <div className={styles.field}>
          <label htmlFor={`${id}name`}>Name (optional)</label>
          <input
            id={`${id}name`}
            autoComplete="off"
            value={name}
            onChange={({ target }) => setName(target.value)}
          />
        </div>
        {schemas.isPending ? (
          <Skeleton lines={3} />
        ) : (
          <InputForm schema={schema} written={written} onChange={setChanged} />
        )}
        <div className={styles.field}>
          <label htmlFor={`${id}expected`}>Expected answer (optional)</label>
          <textarea
            id={`${id}expected`}
            rows={3}
            value={expected}
            onChange={({ target }) => setExpected(target.value)}
          />
        </div>
        {answers.length > 0 && (
          <div className="row">
            {answers.map(({ version, answer }, index) => (
              <button key={index} type="button" className="small" onClick={() => setExpected(answer)}>
                Use the answer of version {version}
              </button>
            ))}
          </div>
        )}
        <ErrorNotice error={save.error} />
        <div className="row">
          <button type="submit" className="primary" disabled={sent === undefined || save.isPending}>
            Save example
          </button>
        </div>
      </form>
    </Dialog>
  );
};
