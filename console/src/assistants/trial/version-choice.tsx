import type { AssistantVersion } from "@langchain/langgraph-sdk";
import { useId } from "react";
import styles from "./trial.module.css";

interface VersionChoiceProps {
  label: string;
  versions: readonly AssistantVersion[];
  active: number;
  chosen: number | undefined;
  onChoose(version: number | undefined): void;
  /** If no version may be chosen, the words for that. */
  none?: string;
}

export const VersionChoice = ({ label, versions, active, chosen, onChoose, none }: VersionChoiceProps) => {
  const id = useId();
  return (
    <label className={`row ${styles.choice}`} htmlFor={id}>
      {label}
      <select
        id={id}
        value={chosen ?? ""}
        onChange={({ target }) => onChoose(target.value === "" ? undefined : Number(target.value))}
      >
        {none !== undefined && <option value="">{none}</option>}
        {versions.map(({ version }) => (
          <option key={version} value={version}>
            Version {version}
            {version === active && " (active)"}
          </option>
        ))}
      </select>
    </label>
  );
};
