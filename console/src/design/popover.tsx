import { Popover as Base } from "@base-ui/react/popover";
import type { ReactElement, ReactNode } from "react";
import floating from "./floating.module.css";
import styles from "./popover.module.css";

interface PopoverProps {
  /** A button with a name. */
  trigger: ReactElement;
  title: string;
  children: ReactNode;
}

/** A small form that opens below its button. */
export const Popover = ({ trigger, title, children }: PopoverProps) => (
  <Base.Root>
    <Base.Trigger render={trigger} />
    <Base.Portal>
      <Base.Positioner sideOffset={4} align="start" collisionPadding={8} className={floating.place}>
        <Base.Popup className={`${floating.anchored} ${styles.popup}`}>
          <Base.Title className="unseen">{title}</Base.Title>
          {children}
        </Base.Popup>
      </Base.Positioner>
    </Base.Portal>
  </Base.Root>
);
