import { Copy, Inbox, Pencil, Settings2, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";
import { Badge, Chip } from "../design/chip.tsx";
import { Confirmation, Dialog } from "../design/dialog.tsx";
import { EmptyState } from "../design/empty-state.tsx";
import { IconButton } from "../design/icon-button.tsx";
import { Menu } from "../design/menu.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { Spinner } from "../design/spinner.tsx";
import { Tabs } from "../design/tabs.tsx";
import { TooltipProvider } from "../design/tooltip.tsx";
import { Fields } from "../parts/fields.tsx";
import { JsonEditor, JsonView } from "../parts/json.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { Table } from "../parts/table.tsx";
import styles from "./gallery.module.css";

const COLOURS = ["ground", "raised", "sunken", "line", "line-strong", "text", "faint", "accent", "marked"];
const MEANINGS = ["good", "busy", "bad", "node", "model", "tool"];
const SIZES = ["xs", "sm", "base", "chat", "lg", "xl"];
const STATUSES = ["idle", "busy", "interrupted", "error", "pending", "running", "success", "timeout"];
const STATE = { messages: [{ type: "human", content: "Hello" }], count: 2, done: false, empty: {} };

const Part = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className={styles.part}>
    <h2>{title}</h2>
    {children}
  </section>
);

const Swatches = ({ names }: { names: readonly string[] }) => (
  <ul className={styles.swatches}>
    {names.map((name) => (
      <li key={name}>
        <span style={{ background: `var(--${name})` }} />
        <code>--{name}</code>
      </li>
    ))}
  </ul>
);

const Buttons = () => (
  <div className="row">
    <button type="button" className="primary">
      Primary
    </button>
    <button type="button">Quiet</button>
    <button type="button" className="plain">
      Plain
    </button>
    <button type="button" className="danger">
      Delete
    </button>
    <button type="button" className="small">
      Small
    </button>
    <button type="button" aria-pressed>
      Pressed
    </button>
    <button type="button" className="primary" disabled>
      <Spinner /> Saving
    </button>
    <button type="button" disabled>
      Disabled
    </button>
    <IconButton label="Copy" icon={Copy} />
    <IconButton label="Options" icon={Settings2} shortcut="O" />
    <IconButton label="Delete" icon={Trash2} size="small" disabled />
    <kbd>Ctrl K</kbd>
  </div>
);

const Choices = () => {
  const [isOn, setIsOn] = useState(true);
  const [tab, setTab] = useState("one");
  return (
    <>
      <div className="row">
        <Chip isOn={isOn} onToggle={() => setIsOn(!isOn)} count={12}>
          Failed
        </Chip>
        <Chip isOn={!isOn} onToggle={() => setIsOn(!isOn)}>
          Running
        </Chip>
        <Badge>3</Badge>
        <Menu
          trigger={<button type="button">Menu</button>}
          items={[
            { label: "Rename", icon: Pencil, shortcut: "R", onSelect: () => undefined },
            { label: "Copy", icon: Copy, isDisabled: true, onSelect: () => undefined },
            { label: "Delete", icon: Trash2, isDanger: true, onSelect: () => undefined },
          ]}
        />
      </div>
      <Tabs
        label="Example of tabs"
        chosen={tab}
        onChoose={setTab}
        tabs={[
          { id: "one", label: "State", content: () => <p>The first tab.</p> },
          { id: "two", label: "Graph", content: () => <p>The second tab.</p> },
        ]}
      />
    </>
  );
};

const Floating = () => {
  const [open, setOpen] = useState<"dialog" | "side" | "question">();
  const close = (): void => setOpen(undefined);
  return (
    <div className="row">
      <button type="button" onClick={() => setOpen("dialog")}>
        Open a dialog
      </button>
      <button type="button" onClick={() => setOpen("side")}>
        Open a side panel
      </button>
      <button type="button" onClick={() => setOpen("question")}>
        Ask for a confirmation
      </button>
      {open === "question" && (
        <Confirmation
          question="Delete this thread?"
          action="Delete"
          onConfirm={() => undefined}
          onClose={close}
        />
      )}
      {(open === "dialog" || open === "side") && (
        <Dialog title="A dialog" place={open === "side" ? "side" : "middle"} onClose={close}>
          <p>It closes by Escape, and returns the focus.</p>
        </Dialog>
      )}
    </div>
  );
};

/** All components in all states, in development only. */
export default function Gallery() {
  return (
    <TooltipProvider>
      <main className={styles.gallery}>
        <PageHead title="Gallery" actions={<button type="button">An action</button>}>
          <span className="faint">The components of DESIGN.md</span>
        </PageHead>
        <Part title="Colours">
          <Swatches names={COLOURS} />
          <Swatches names={MEANINGS} />
        </Part>
        <Part title="Type">
          {SIZES.map((size) => (
            <p key={size} style={{ fontSize: `var(--text-${size})` }}>
              <code>--text-{size}</code> A graph answers in 1.9 s with 907 tokens.
            </p>
          ))}
        </Part>
        <Part title="Buttons">
          <Buttons />
        </Part>
        <Part title="Choices">
          <Choices />
        </Part>
        <Part title="Fields">
          <label className="stack">
            Text
            <input placeholder="Empty" />
          </label>
          <label className="stack">
            Choice
            <select>
              <option>agent</option>
            </select>
          </label>
          <JsonEditor label="JSON" initial={STATE} rows={4} onChange={() => undefined} />
        </Part>
        <Part title="Status">
          <div className="row">
            {STATUSES.map((status) => (
              <Status key={status} status={status} />
            ))}
          </div>
        </Part>
        <Part title="Floating">
          <Floating />
        </Part>
        <Part title="Loading, empty, error">
          <Skeleton />
          <EmptyState
            icon={Inbox}
            title="Nothing waits for you"
            action={<button type="button">Refresh</button>}
          >
            Threads that ask a question appear here.
          </EmptyState>
          <ErrorNotice error={new Error("The server is away. Try again.")} onRetry={() => undefined} />
        </Part>
        <Part title="Data">
          <Fields
            fields={[
              ["Graph", "agent"],
              ["Duration", "1.9 s"],
            ]}
          />
          <Table label="Example of a table" columns={["Run", "Status", "Duration"]}>
            <tr>
              <td>…9f25</td>
              <td>
                <Status status="success" />
              </td>
              <td>1.9 s</td>
            </tr>
          </Table>
          <JsonView value={STATE} />
        </Part>
      </main>
    </TooltipProvider>
  );
}
