import { useState, type ReactNode } from "react";

export const Copy = ({ text, label, children }: { text: string; label?: string; children: ReactNode }) => {
  const [said, setSaid] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied.");
    } catch {
      setSaid("Not copied: the browser did not allow it.");
    }
  };
  return (
    <>
      <button type="button" className="plain" aria-label={label} title={label} onClick={() => void copy()}>
        {children}
      </button>
      <span role="status" className="faint">
        {said}
      </span>
    </>
  );
};
