import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { useId, useState } from "react";
import { Confirmation } from "../design/dialog.tsx";
import { JsonView } from "../parts/json.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { useConnection } from "../server/connection.tsx";
import { compare, FIELDS_AT_MOST, type ComparedField } from "./difference.ts";
import { useAssistantChange } from "./queries.ts";
import styles from "./assistants.module.css";

const SHOWN_FIRST = 20;

interface VersionsProps {
  assistant: Assistant;
  /** Newest first. */
  versions: readonly AssistantVersion[];
}

export const Versions = ({ assistant, versions }: VersionsProps) => {
  const { client } = useConnection();
  const [shown, setShown] = useState(SHOWN_FIRST);
  const [activating, setActivating] = useState<number>();
  const activate = useAssistantChange((version: number) =>
    client.assistants.setLatest(assistant.assistant_id, version),
  );
  return (
    <section className="stack" aria-labelledby="versions">
      <h2 id="versions">Versions</h2>
      <p className="faint">
        Runs use the active version. A version cannot be changed or deleted. To stop using one, activate
        another.
      </p>
      <ErrorNotice error={activate.error} />
      <Table label="Table of versions" columns={["Version", "Active", "Created", "Name"]}>
        {versions.slice(0, shown).map(({ version, name, created_at }) => (
          <tr key={version}>
            <td>{version}</td>
            <td>
              {version === assistant.version ? (
                <strong>active</strong>
              ) : (
                <button
                  type="button"
                  aria-label={`Activate version ${version}`}
                  disabled={activate.isPending}
                  onClick={() => setActivating(version)}
                >
                  Activate
                </button>
              )}
            </td>
            <td>
              <Time iso={created_at} />
            </td>
            <td className={styles.wide}>{name}</td>
          </tr>
        ))}
      </Table>
      {versions.length > shown && (
        <div>
          <button type="button" onClick={() => setShown(shown + 100)}>
            Show more of {versions.length}
          </button>
        </div>
      )}
      {versions.length > 1 && <Comparison assistant={assistant} versions={versions} />}
      {activating !== undefined && (
        <Confirmation
          question={`Activate version ${activating}? Runs that start from now on use it.`}
          action={`Activate version ${activating}`}
          onConfirm={() => activate.mutate(activating)}
          onClose={() => setActivating(undefined)}
        />
      )}
    </section>
  );
};

const Comparison = ({ assistant, versions }: VersionsProps) => {
  const id = useId();
  const [chosen, setChosen] = useState<{ left?: number; right?: number }>({});
  const [isAll, setIsAll] = useState(false);
  const newest = versions[0]?.version;
  // At first, the newest other version and the active one.
  const right = chosen.right ?? assistant.version;
  const left = chosen.left ?? versions.find(({ version }) => version !== right)?.version ?? newest;
  const find = (number: number | undefined) => versions.find(({ version }) => version === number);
  const sides = { left: find(left), right: find(right) };
  const choice = (side: "left" | "right", label: string, value: number | undefined) => (
    <label className="row" htmlFor={`${id}${side}`}>
      {label}
      <select
        id={`${id}${side}`}
        value={value}
        onChange={({ target }) => setChosen({ ...chosen, [side]: Number(target.value) })}
      >
        {versions.map(({ version }) => (
          <option key={version} value={version}>
            Version {version}
            {version === assistant.version && " (active)"}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <section className="stack" aria-labelledby={`${id}heading`}>
      <h3 id={`${id}heading`}>Side by side</h3>
      <div className="row">
        {choice("left", "Compare", left)}
        {choice("right", "with", right)}
        <label className="row">
          <input type="checkbox" checked={isAll} onChange={({ target }) => setIsAll(target.checked)} />
          Show equal fields
        </label>
      </div>
      {sides.left !== undefined && sides.right !== undefined && (
        <Differences left={sides.left} right={sides.right} isAll={isAll} />
      )}
    </section>
  );
};

interface DifferencesProps {
  left: AssistantVersion;
  right: AssistantVersion;
  isAll: boolean;
}

const TEXT_AT_MOST = 2_000;

/** Keeps the line breaks of prompts. */
const Side = ({ value }: { value: unknown }) =>
  typeof value === "string" && value.length <= TEXT_AT_MOST ? (
    <span className={styles.prose}>{value}</span>
  ) : (
    <JsonView value={value} />
  );

const Differences = ({ left, right, isAll }: DifferencesProps) => {
  const fields = compare(left, right).filter(({ difference }) => isAll || difference !== "same");
  const words: Record<ComparedField["difference"], string> = {
    same: "same",
    changed: "changed",
    "left only": `only in version ${left.version}`,
    "right only": `only in version ${right.version}`,
  };
  if (fields.length === 0) return <p role="status">The two versions are equal.</p>;
  return (
    <>
      <div className={styles.scroll} tabIndex={0} role="region" aria-label="Differences">
        <table className={styles.comparison}>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Version {left.version}</th>
              <th scope="col">Version {right.version}</th>
              <th scope="col">Difference</th>
            </tr>
          </thead>
          <tbody>
            {fields.slice(0, FIELDS_AT_MOST).map((field) => (
              <tr key={field.path} data-difference={field.difference}>
                <th scope="row">{field.path}</th>
                {[field.left, field.right].map((side, index) => (
                  <td key={index}>
                    {side === undefined ? <span className="faint">–</span> : <Side value={side.value} />}
                  </td>
                ))}
                <td>{words[field.difference]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {fields.length > FIELDS_AT_MOST && (
        <p className="faint">{fields.length - FIELDS_AT_MOST} more fields are not shown.</p>
      )}
    </>
  );
};
