import { Tabs as Base } from "@base-ui/react/tabs";
import type { ReactNode } from "react";
import styles from "./tabs.module.css";

export interface Tab {
  id: string;
  label: ReactNode;
  /** Rendered only while the tab is shown. */
  content(): ReactNode;
}

interface TabsProps {
  /** The name of the group. */
  label: string;
  tabs: readonly Tab[];
  chosen: string;
  onChoose(id: string): void;
  /** Beside the tabs. */
  actions?: ReactNode;
}

export const Tabs = ({ label, tabs, chosen, onChoose, actions }: TabsProps) => (
  <Base.Root value={chosen} onValueChange={(id: string) => onChoose(id)} className={styles.tabs}>
    <div className={styles.bar}>
      <Base.List aria-label={label} className={styles.list} activateOnFocus>
        {tabs.map((tab) => (
          <Base.Tab key={tab.id} value={tab.id} className={styles.tab}>
            {tab.label}
          </Base.Tab>
        ))}
      </Base.List>
      {actions}
    </div>
    {tabs.map((tab) => (
      <Base.Panel key={tab.id} value={tab.id} className={styles.panel}>
        {tab.content()}
      </Base.Panel>
    ))}
  </Base.Root>
);
