import { useState } from "react";
import { Confirmation, Dialog } from "../design/dialog.tsx";
import { JsonView } from "../parts/json.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Time } from "../parts/time.tsx";
import { ItemForm } from "./item-form.tsx";
import { useDeleteItem, useItem, type ItemAddress } from "./queries.ts";
import styles from "./store.module.css";

export const ItemDialog = ({ address, onClose }: { address: ItemAddress; onClose(): void }) => {
  const { data: item, error, refetch, isPending } = useItem(address);
  const [dialog, setDialog] = useState<"edit" | "delete">();
  const remove = useDeleteItem(onClose);
  if (dialog === "edit" && item != null)
    return <ItemForm namespace={address.namespace} item={item} onClose={onClose} />;
  return (
    <>
      <Dialog title={address.key === "" ? "(an empty key)" : address.key} onClose={onClose}>
        <p className={`faint ${styles.long}`}>{address.namespace.join(" › ")}</p>
        <ErrorNotice
          error={error ?? remove.error}
          onRetry={error === null ? undefined : () => void refetch()}
        />
        {isPending && <p className="faint">Loading…</p>}
        {item === null && <p role="status">This item was deleted, or it has expired.</p>}
        {item != null && (
          <>
            <JsonView value={item.value} depth={2} />
            <p className="row faint">
              <span>
                Created <Time iso={item.created_at} />
              </span>
              <span>
                Updated <Time iso={item.updated_at} />
              </span>
              {item.expires_at !== undefined && (
                <span>
                  Expires <Time iso={item.expires_at} />, {item.ttl} minutes after it was last read or written
                </span>
              )}
            </p>
            <div className="row">
              <button type="button" onClick={() => setDialog("edit")}>
                Edit
              </button>
              <button type="button" className="danger" onClick={() => setDialog("delete")}>
                Delete
              </button>
            </div>
          </>
        )}
      </Dialog>
      {dialog === "delete" && (
        <Confirmation
          question="Delete this item? This can't be undone."
          action="Delete item"
          onConfirm={() => remove.mutate(address)}
          onClose={() => setDialog(undefined)}
        />
      )}
    </>
  );
};
