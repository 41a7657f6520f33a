import type { LucideIcon } from "lucide-react";
import type { ComponentProps } from "react";
import { Tooltip } from "./tooltip.tsx";
import styles from "./icon-button.module.css";

interface IconButtonProps extends Omit<ComponentProps<"button">, "children" | "aria-label"> {
  /** Its name, and its tooltip. */
  label: string;
  icon: LucideIcon;
  /** E.g. `N`. */
  shortcut?: string;
  size?: "small" | "normal";
}

export const IconButton = ({
  label,
  icon: Icon,
  shortcut,
  size = "normal",
  className = "",
  ...button
}: IconButtonProps) => (
  <Tooltip
    text={
      <>
        {label}
        {shortcut !== undefined && <kbd>{shortcut}</kbd>}
      </>
    }
  >
    <button
      type="button"
      {...button}
      aria-label={label}
      className={`plain ${styles.icon} ${size === "small" ? styles.small : ""} ${className}`}
    >
      <Icon aria-hidden size={16} strokeWidth={1.75} />
    </button>
  </Tooltip>
);
