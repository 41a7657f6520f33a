import { Paperclip } from "lucide-react";
import { useEffect, useId, useLayoutEffect, useRef, useState, type KeyboardEvent } from "react";
import { IconButton } from "../../design/icon-button.tsx";
import { ErrorNotice } from "../../parts/notice.tsx";
import { keepText, keptText } from "../../server/tab-storage.ts";
import { ACCEPTED, attach, humanMessage, readFiles, type Attachment } from "./attachments.ts";
import { AttachedFiles } from "./attached-files.tsx";
import { SendRow, type InputProps } from "./send-row.tsx";
import styles from "./composer.module.css";

export interface MessageInputProps extends InputProps {
  /** Names the draft that outlives the page. */
  draftName: string;
  /** Whether the box takes the focus from another control. */
  takesFocus?: boolean;
  /** The user's messages, oldest first. */
  recall?(): readonly string[];
}

/** On a phone the focus would open the keyboard over the messages. */
const HAS_KEYBOARD = "(min-width: 64rem) and (pointer: fine)";

const isFocusFree = (): boolean => {
  const { activeElement } = document;
  const isFree = activeElement === null || activeElement.matches("body, main");
  return isFree && matchMedia(HAS_KEYBOARD).matches;
};

/** The arrows lead through earlier messages, as in a shell. */
const useRecall = (recall: MessageInputProps["recall"]) => {
  const at = useRef<{ index: number; text: string }>(undefined);
  /** Undefined: the key moves the cursor. */
  return (key: string, text: string): string | undefined => {
    const isRecalled = at.current !== undefined && at.current.text === text;
    if (!isRecalled && text !== "") return undefined;
    const before = recall?.() ?? [];
    const index = (isRecalled ? (at.current?.index ?? 0) : before.length) + (key === "ArrowUp" ? -1 : 1);
    if (index < 0 || (index >= before.length && !isRecalled)) return undefined;
    const found = before[index] ?? "";
    at.current = index >= before.length ? undefined : { index, text: found };
    return found;
  };
};

export const MessageInput = ({
  draftName,
  takesFocus = false,
  recall,
  onSend,
  ...row
}: MessageInputProps) => {
  const [text, setText] = useState(() => keptText(draftName) ?? "");
  const [attached, setAttached] = useState<readonly Attachment[]>([]);
  const latest = useRef(attached);
  useLayoutEffect(() => {
    latest.current = attached;
  }, [attached]);
  const [fault, setFault] = useState<unknown>();
  const [reading, setReading] = useState(0);
  const [isOver, setIsOver] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const id = useId();
  const recalled = useRecall(recall);
  const isReady = (text.trim() !== "" || attached.length > 0) && reading === 0;
  useEffect(() => {
    if (takesFocus || isFocusFree()) box.current?.focus({ preventScroll: true });
  }, [takesFocus]);

  useLayoutEffect(() => {
    const { current } = box;
    if (current === null || CSS.supports("field-sizing", "content")) return;
    current.style.height = "auto";
    current.style.height = `${current.scrollHeight}px`;
  }, [text]);

  const write = (changed: string): void => {
    setText(changed);
    keepText(draftName, changed);
  };
  const send = (): void => {
    if (!isReady) return;
    setFault(undefined);
    setText("");
    setAttached([]);
    // The draft stays until the server has the message.
    onSend({ messages: [humanMessage(text.trim(), attached)] }).then(
      () => keptText(draftName) === text && keepText(draftName, ""),
      () => {
        // The conversation shows the error, and the user keeps the text.
        setText((now) => (now === "" ? text : now));
        setAttached((now) => (now.length === 0 ? attached : now));
      },
    );
  };
  const take = (chosen: readonly File[]): void => {
    if (chosen.length === 0) return;
    setFault(undefined);
    setReading((count) => count + 1);
    readFiles(chosen)
      .then((read) => {
        latest.current = attach(latest.current, read);
        setAttached(latest.current);
      })
      .catch(setFault)
      .finally(() => setReading((count) => count - 1));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    // During IME composition Enter accepts the word.
    if (event.shiftKey || event.nativeEvent.isComposing) return;
    if (event.key === "Enter") {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const found = recalled(event.key, text);
      if (found === undefined) return;
      event.preventDefault();
      write(found);
    }
  };
  return (
    <form
      className={styles.input}
      data-over={isOver}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        setIsOver(false);
        if (event.dataTransfer.files.length === 0) return;
        event.preventDefault();
        take([...event.dataTransfer.files]);
      }}
    >
      <ErrorNotice error={fault} />
      <AttachedFiles
        files={attached}
        onRemove={(index) => setAttached(attached.filter((_, position) => position !== index))}
      />
      <label htmlFor={id} className="unseen">
        Message
      </label>
      <textarea
        ref={box}
        id={id}
        className={styles.text}
        rows={1}
        placeholder="Write a message"
        value={text}
        onChange={({ target }) => write(target.value)}
        onKeyDown={onKeyDown}
        onPaste={({ clipboardData }) => take([...clipboardData.files])}
      />
      <SendRow {...row} isDisabled={!isReady}>
        <input
          ref={files}
          type="file"
          accept={ACCEPTED}
          multiple
          hidden
          aria-label="Files"
          onChange={({ target }) => {
            take([...(target.files ?? [])]);
            target.value = "";
          }}
        />
        <IconButton label="Attach files" icon={Paperclip} onClick={() => files.current?.click()} />
      </SendRow>
    </form>
  );
};
