import { Dialog } from "../design/dialog.tsx";
import { keysText, useAllCommands, type Command } from "../parts/commands.tsx";
import styles from "./keys-dialog.module.css";

/** Keys inside one control, which are no commands. */
const INSIDE: readonly (readonly [string, string])[] = [
  ["Enter", "Send the message"],
  ["Shift+Enter", "Begin a new line"],
  ["ArrowUp", "Recall the previous message, in an empty message box"],
  ["$mod+Enter", "Send the edited message or the answer"],
];

/** Lists the keys that work now. */
export default function KeysDialog({ onClose }: { onClose(): void }) {
  const commands = useAllCommands().filter(({ keys }) => keys !== undefined);
  const groups = new Map<string, Command[]>();
  for (const command of commands) groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      {[...groups].map(([group, members]) => (
        <section key={group}>
          <h3>{group}</h3>
          <dl className={styles.keys}>
            {members.map(({ label, keys = "" }) => (
              <div key={label}>
                <dt>{label}</dt>
                <dd>
                  <kbd>{keysText(keys)}</kbd>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <section>
        <h3>Writing</h3>
        <dl className={styles.keys}>
          {INSIDE.map(([keys, label]) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                <kbd>{keysText(keys)}</kbd>
              </dd>
            </div>
          ))}
        </dl>
      </section>
    </Dialog>
  );
}
