import { useId, useState, type FormEvent } from "react";
import { Dialog } from "../design/dialog.tsx";
import { JsonEditor } from "../parts/json.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { labelsOf, textOf } from "./location.ts";
import { usePutItem, type StoreItem } from "./queries.ts";
import styles from "./store.module.css";

interface ItemFormProps {
  /** The suggested namespace of a new item. */
  namespace: readonly string[];
  /** Undefined: a new item. */
  item?: StoreItem;
  onClose(): void;
}

export const ItemForm = ({ namespace, item, onClose }: ItemFormProps) => {
  const id = useId();
  const [namespaceText, setNamespaceText] = useState(textOf(namespace));
  const [key, setKey] = useState(item?.key ?? "");
  const [value, setValue] = useState<{ json: unknown } | undefined>({ json: item?.value ?? {} });
  const [minutes, setMinutes] = useState(item?.ttl === undefined ? "" : String(item.ttl));
  const put = usePutItem(onClose);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    // An empty field removes the time to live of an edited item.
    const ttl = minutes === "" ? (item === undefined ? undefined : null) : Number(minutes);
    put.mutate({
      namespace: labelsOf(namespaceText),
      key,
      value: value?.json,
      ttl,
      isNew: item === undefined,
    });
  };
  return (
    <Dialog title={item === undefined ? "New item" : `Edit ${item.key}`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {item === undefined && (
          <>
            <div className={styles.field}>
              <label htmlFor={`${id}namespace`}>Namespace</label>
              <input
                id={`${id}namespace`}
                required
                autoComplete="off"
                value={namespaceText}
                aria-describedby={`${id}namespace-hint`}
                onChange={({ target }) => setNamespaceText(target.value)}
              />
              <p id={`${id}namespace-hint`} className="faint">
                Labels with periods between them, e.g. <code>users.ada</code>
              </p>
            </div>
            <div className={styles.field}>
              <label htmlFor={`${id}key`}>Key</label>
              <input
                id={`${id}key`}
                required
                autoComplete="off"
                value={key}
                onChange={({ target }) => setKey(target.value)}
              />
            </div>
          </>
        )}
        <JsonEditor label="Value (JSON)" initial={value?.json} rows={10} onChange={setValue} />
        <div className={styles.field}>
          <label htmlFor={`${id}ttl`}>Time to live, in minutes</label>
          <input
            id={`${id}ttl`}
            type="number"
            min="0.01"
            step="any"
            value={minutes}
            aria-describedby={`${id}ttl-hint`}
            onChange={({ target }) => setMinutes(target.value)}
          />
          <p id={`${id}ttl-hint`} className="faint">
            {item === undefined
              ? "Counted from the last read or write. If empty, the setting of the server applies."
              : "Counted from the last read or write. If empty, the item does not expire."}
          </p>
        </div>
        <ErrorNotice error={put.error} />
        <div>
          <button type="submit" className="primary" disabled={value === undefined || put.isPending}>
            {item === undefined ? "Store item" : "Store changes"}
          </button>
        </div>
      </form>
    </Dialog>
  );
};
