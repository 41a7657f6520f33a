import { useState, type FormEvent } from "react";
import { JsonEditor } from "../parts/json.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { isObject } from "../parts/is-object.ts";
import { Skeleton } from "../design/skeleton.tsx";
import { truncate } from "../design/truncate.ts";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { ItemDialog } from "./item-dialog.tsx";
import { ItemForm } from "./item-form.tsx";
import { textOf } from "./location.ts";
import { PAGE_SIZE, useItems, type ItemAddress, type ItemFilter, type StoreItem } from "./queries.ts";
import styles from "./store.module.css";

/** Set `key` to the namespace. */
export const Items = ({ namespace }: { namespace: readonly string[] }) => {
  const [filter, setFilter] = useState<ItemFilter>({
    prefix: namespace,
    fields: undefined,
    meaning: "",
    page: 0,
  });
  const [opened, setOpened] = useState<ItemAddress>();
  const [isNew, setIsNew] = useState(false);
  const { data, error, refetch, isPending, isFetching } = useItems(filter);
  const hasScores = data?.items.some(({ score }) => score !== undefined) === true;
  const isQueryIgnored =
    filter.meaning !== "" && data !== undefined && data.items.length > 0 && !hasScores && !isFetching;
  const goTo = (page: number): void => setFilter({ ...filter, page });
  return (
    <section className={`stack ${styles.items}`} aria-labelledby="items">
      <div className="row">
        <h2 id="items" className={styles.long}>
          {namespace.length === 0 ? "All items" : `Items of ${truncate(namespace.join(" › "))}`}
        </h2>
        <button type="button" className={`primary ${styles.last}`} onClick={() => setIsNew(true)}>
          New item
        </button>
      </div>
      <Search
        filter={filter}
        onSearch={(fields, meaning) => setFilter({ ...filter, fields, meaning, page: 0 })}
      />
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {isPending && error === null && <Skeleton lines={5} />}
      {isQueryIgnored && (
        <p className="notice" role="status">
          This server has no semantic search, so the text was ignored. To set it up, add{" "}
          <code>store.index</code> to langgraph.json.
        </p>
      )}
      {data !== undefined && data.items.length === 0 && <Empty>No items match.</Empty>}
      {data !== undefined && data.items.length > 0 && (
        <ItemTable items={data.items} hasScores={hasScores} below={namespace.length} onOpen={setOpened} />
      )}
      {data?.isTruncated && (
        <p className="faint">These items are too large to list more. Use a filter to see others.</p>
      )}
      {(filter.page > 0 || data?.hasMore) && (
        <div className="row">
          <button type="button" disabled={filter.page === 0} onClick={() => goTo(filter.page - 1)}>
            Previous
          </button>
          <span role="status">
            {filter.page * PAGE_SIZE + 1}–{filter.page * PAGE_SIZE + (data?.items.length ?? 0)}
          </span>
          <button type="button" disabled={!data?.hasMore} onClick={() => goTo(filter.page + 1)}>
            Next
          </button>
        </div>
      )}
      {opened !== undefined && <ItemDialog address={opened} onClose={() => setOpened(undefined)} />}
      {isNew && <ItemForm namespace={namespace} onClose={() => setIsNew(false)} />}
    </section>
  );
};

interface SearchProps {
  filter: ItemFilter;
  onSearch(fields: ItemFilter["fields"], meaning: string): void;
}

const Search = ({ filter, onSearch }: SearchProps) => {
  const [meaning, setMeaning] = useState(filter.meaning);
  const [fields, setFields] = useState<{ json: unknown } | undefined>({ json: filter.fields });
  const isUsable = fields !== undefined && (fields.json === undefined || isObject(fields.json));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const json = fields?.json;
    onSearch(isObject(json) ? json : undefined, meaning.trim());
  };
  return (
    <search>
      <form className="stack" onSubmit={submit}>
        <label className="row">
          By meaning
          <input
            type="search"
            className={styles.grows}
            value={meaning}
            onChange={({ target }) => setMeaning(target.value)}
          />
        </label>
        <details>
          <summary>By fields</summary>
          <JsonEditor
            label={'Filter (JSON), e.g. {"kind": "note", "stars": {"$gte": 3}}'}
            initial={undefined}
            rows={3}
            mayBeEmpty
            onChange={setFields}
          />
          {fields !== undefined && !isUsable && <p role="status">A filter is an object.</p>}
        </details>
        <div>
          <button type="submit" disabled={!isUsable}>
            Search
          </button>
        </div>
      </form>
    </search>
  );
};

interface ItemTableProps {
  items: readonly StoreItem[];
  hasScores: boolean;
  below: number;
  onOpen(address: ItemAddress): void;
}

const ItemTable = ({ items, hasScores, below, onOpen }: ItemTableProps) => (
  <Table label="Items" columns={["Key", "Namespace", ...(hasScores ? ["Score"] : []), "Updated", "Expires"]}>
    {items.map(({ namespace, key, score, updated_at, expires_at }) => (
      <tr key={`${textOf(namespace)} ${key}`}>
        <td className={styles.wide}>
          <button type="button" className={styles.key} onClick={() => onOpen({ namespace, key })}>
            {key === "" ? "(an empty key)" : truncate(key)}
          </button>
        </td>
        <td className={styles.wide}>
          {namespace.length === below ? (
            <span className="faint">here</span>
          ) : (
            truncate(namespace.slice(below).join(" › "))
          )}
        </td>
        {hasScores && <td>{score?.toFixed(3)}</td>}
        <td>
          <Time iso={updated_at} />
        </td>
        <td>{expires_at === undefined ? <span className="faint">never</span> : <Time iso={expires_at} />}</td>
      </tr>
    ))}
  </Table>
);
