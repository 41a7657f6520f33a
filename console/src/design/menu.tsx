import { Menu as Base } from "@base-ui/react/menu";
import type { LucideIcon } from "lucide-react";
import { useState, type ReactElement } from "react";
import floating from "./floating.module.css";
import styles from "./menu.module.css";

export interface MenuItem {
  label: string;
  icon?: LucideIcon;
  /** E.g. `N`. */
  shortcut?: string;
  isDanger?: boolean;
  isDisabled?: boolean;
  onSelect(): void;
}

/** @param props.trigger a button with a name */
export const Menu = ({ trigger, items }: { trigger: ReactElement; items: readonly MenuItem[] }) => {
  // Beside the trigger, so that the menu belongs to the same region of the page.
  const [place, setPlace] = useState<HTMLElement | null>(null);
  return (
    <>
      <Base.Root>
        <Base.Trigger render={trigger} />
        <Base.Portal container={place}>
          <Base.Positioner sideOffset={4} align="end" positionMethod="fixed" className={floating.place}>
            <Base.Popup className={`${floating.anchored} ${styles.popup}`}>
              {items.map(({ label, icon: Icon, shortcut, isDanger, isDisabled, onSelect }) => (
                <Base.Item
                  key={label}
                  className={`${floating.item} ${styles.item}`}
                  data-danger={isDanger}
                  disabled={isDisabled}
                  onClick={onSelect}
                >
                  {Icon !== undefined && <Icon aria-hidden size={16} strokeWidth={1.75} />}
                  <span>{label}</span>
                  {shortcut !== undefined && <kbd>{shortcut}</kbd>}
                </Base.Item>
              ))}
            </Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      </Base.Root>
      <span ref={setPlace} className={styles.portal} />
    </>
  );
};
