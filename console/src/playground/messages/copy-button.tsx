import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { IconButton } from "../../design/icon-button.tsx";

const SHOWN_MS = 2_000;

/** Says beside its icon whether the text was copied. */
export const CopyButton = ({ text, label = "Copy" }: { text: string; label?: string }) => {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said === "") return;
    const timer = setTimeout(() => setSaid(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("Not copied: the browser did not allow it");
    }
  };
  return (
    <>
      <IconButton
        label={label}
        icon={said === "Copied" ? Check : Copy}
        size="small"
        onClick={() => void copy()}
      />
      <span role="status" className={said === "" || said === "Copied" ? "unseen" : "faint"}>
        {said}
      </span>
    </>
  );
};
