import { ChevronDown, ChevronUp, X } from "lucide-react";
import {
  useDeferredValue,
  useEffect,
  useEffectEvent,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type RefObject,
} from "react";
import { IconButton } from "../../design/icon-button.tsx";
import { useCommands, type Command } from "../../parts/commands.tsx";
import { findIn, markWords } from "./find.ts";
import type { Row } from "./messages.ts";
import styles from "./find-bar.module.css";

interface FindBarProps {
  rows: readonly Row[];
  scroller: RefObject<HTMLElement | null>;
  onShow(index: number): void;
  onClose(): void;
}

/** The browser's own search does not find messages that are not rendered. */
export const FindBar = ({ rows, scroller, onShow, onClose }: FindBarProps) => {
  const [isOpen, setIsOpen] = useState(false);
  const focusedBefore = useRef<Element | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const commands = useMemo<Command[]>(
    () => [
      {
        label: "Find in this thread",
        group: "Thread",
        keys: "$mod+f",
        worksInText: true,
        run: () => {
          if (!isOpen) focusedBefore.current = document.activeElement;
          setIsOpen(true);
          field.current?.select();
        },
      },
    ],
    [isOpen],
  );
  useCommands(commands);
  if (!isOpen) return null;
  const close = (): void => {
    setIsOpen(false);
    onClose();
    const before = focusedBefore.current;
    if (before instanceof HTMLElement && before.isConnected && before !== document.body) before.focus();
    else scroller.current?.focus();
  };
  return <OpenBar rows={rows} scroller={scroller} field={field} onShow={onShow} onClose={close} />;
};

const OpenBar = ({
  rows,
  scroller,
  field,
  onShow,
  onClose,
}: FindBarProps & { field: RefObject<HTMLInputElement | null> }) => {
  const [words, setWords] = useState("");
  const [position, setPosition] = useState(0);
  const [settledRows, settledWords] = [useDeferredValue(rows), useDeferredValue(words)];
  const found = useMemo(() => findIn(settledRows, settledWords), [settledRows, settledWords]);
  const at = Math.min(position, Math.max(0, found.length - 1));
  const shown = found[at];
  const show = useEffectEvent(onShow);
  useEffect(() => {
    if (shown !== undefined) show(shown);
  }, [shown, settledWords]);
  useEffect(() => markWords(scroller.current, settledWords), [scroller, settledWords]);
  const step = (by: 1 | -1): void => {
    if (found.length > 0) setPosition((at + by + found.length) % found.length);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    // Escape would also stop a run.
    event.stopPropagation();
    if (event.key === "Escape") onClose();
    else step(event.shiftKey ? -1 : 1);
  };
  return (
    <search className={styles.bar} aria-label="Find in this thread" onKeyDown={onKeyDown}>
      <input
        ref={field}
        type="text"
        autoFocus
        aria-label="Words to find"
        placeholder="Find in this thread"
        value={words}
        onChange={({ target }) => {
          setWords(target.value);
          setPosition(0);
        }}
      />
      <span role="status" className={styles.count}>
        {words.trim() === "" ? "" : found.length === 0 ? "None" : `${at + 1} of ${found.length}`}
      </span>
      <IconButton label="Previous" icon={ChevronUp} disabled={found.length === 0} onClick={() => step(-1)} />
      <IconButton label="Next" icon={ChevronDown} disabled={found.length === 0} onClick={() => step(1)} />
      <IconButton label="Close" icon={X} shortcut="Esc" onClick={onClose} />
    </search>
  );
};
