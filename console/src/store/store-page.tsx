import { Items } from "./items.tsx";
import { Namespaces } from "./namespaces.tsx";
import { textOf, useNamespace } from "./location.ts";
import styles from "./store.module.css";

export default function StorePage() {
  const namespace = useNamespace();
  const key = textOf(namespace);
  return (
    <div className="stack">
      <h1>Store</h1>
      <p className="faint">
        Data that graphs keep across threads. Opening an item here does not extend its time to live.
      </p>
      <div className={styles.page}>
        <Namespaces key={`namespaces ${key}`} current={namespace} />
        <Items key={`items ${key}`} namespace={namespace} />
      </div>
    </div>
  );
}
