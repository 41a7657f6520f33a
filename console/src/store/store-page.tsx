import { PageHead } from "../design/page-head.tsx";
import { Items } from "./items.tsx";
import { Namespaces } from "./namespaces.tsx";
import { textOf, useNamespace } from "./location.ts";
import styles from "./store.module.css";

export default function StorePage() {
  const namespace = useNamespace();
  const key = textOf(namespace);
  return (
    <div className="stack">
      <PageHead title="Store">
        <span className="faint">
          Data that graphs keep across threads. Opening an item here does not extend its time to live.
        </span>
      </PageHead>
      <div className={styles.page}>
        <Namespaces key={`namespaces ${key}`} current={namespace} />
        <Items key={`items ${key}`} namespace={namespace} />
      </div>
    </div>
  );
}
