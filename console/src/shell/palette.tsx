import { Autocomplete } from "@base-ui/react/autocomplete";
import { Dialog } from "@base-ui/react/dialog";
import { Search } from "lucide-react";
import { useRecentThreads } from "./recent-threads.ts";
import floating from "../design/floating.module.css";
import { keysText, useAllCommands, type Command } from "../parts/commands.tsx";
import styles from "./palette.module.css";

interface Group {
  value: string;
  items: Command[];
}

const groupsOf = (commands: readonly Command[]): Group[] => {
  const groups = new Map<string, Command[]>();
  for (const command of commands) {
    const items = groups.get(command.group) ?? [];
    items.push(command);
    groups.set(command.group, items);
  }
  return [...groups].map(([value, items]) => ({ value, items }));
};

/** Lists all commands that are possible now, and the threads to go to. Open as long as it is rendered. */
export default function Palette({ onClose }: { onClose(): void }) {
  const groups = groupsOf([...useAllCommands(), ...useRecentThreads()]);
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={floating.backdrop} />
        <Dialog.Popup className={`${floating.modal} ${styles.popup}`} aria-label="Commands">
          <Autocomplete.Root
            open
            inline
            items={groups}
            autoHighlight="always"
            keepHighlight
            itemToStringValue={(command: Command) => command.label}
          >
            <div className={styles.search}>
              <Search aria-hidden size={16} strokeWidth={1.75} />
              <Autocomplete.Input aria-label="Search commands" placeholder="What do you want to do?" />
            </div>
            <Dialog.Close className="unseen">Close</Dialog.Close>
            <Autocomplete.Empty>
              <p className={styles.none}>No command has these words.</p>
            </Autocomplete.Empty>
            <Autocomplete.List className={styles.list}>
              {(group: Group) => (
                <Autocomplete.Group key={group.value} items={group.items}>
                  <Autocomplete.GroupLabel className={styles.group}>{group.value}</Autocomplete.GroupLabel>
                  <Autocomplete.Collection>
                    {(command: Command) => (
                      <Autocomplete.Item
                        key={`${command.group} ${command.id ?? command.label}`}
                        value={command}
                        className={`${floating.item} ${styles.item}`}
                        onClick={() => {
                          onClose();
                          command.run();
                        }}
                      >
                        <span>{command.label}</span>
                        {command.keys !== undefined && <kbd>{keysText(command.keys)}</kbd>}
                      </Autocomplete.Item>
                    )}
                  </Autocomplete.Collection>
                </Autocomplete.Group>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
