import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ChevronDown, UserRound } from "lucide-react";
import { useId, useMemo, useState, type FormEvent } from "react";
import { Dialog } from "../design/dialog.tsx";
import { Menu } from "../design/menu.tsx";
import { truncate } from "../design/truncate.ts";
import { useCommands, type Command } from "../parts/commands.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { WAITING_KEY } from "../parts/waiting-threads.ts";
import { useConnection } from "../server/connection.tsx";

const STORED = "threadloom-name";
const NAME_CHARACTERS = 30;

/** The name under which this person takes threads; empty until the first. */
export const useOwnName = (): [string, (name: string) => void] => {
  const [name, setName] = useState(() => localStorage.getItem(STORED) ?? "");
  const keep = (next: string): void => {
    setName(next);
    localStorage.setItem(STORED, next);
  };
  return [name, keep];
};

interface AssigneeProps {
  threadId: string;
  assignee: string | undefined;
  /** Of the waiting threads. */
  names: readonly string[];
  me: string;
  onMe(name: string): void;
}

export const Assignee = ({ threadId, assignee, names, me, onMe }: AssigneeProps) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"me" | "other">();
  const assign = useMutation({
    mutationFn: (name: string | null) => client.threads.update(threadId, { metadata: { assignee: name } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: WAITING_KEY }),
  });
  const { mutate } = assign;
  const isMine = me !== "" && assignee === me;
  const commands = useMemo<Command[]>(() => {
    const take = (): void => (me === "" ? setAsking("me") : mutate(me));
    return isMine ? [] : [{ label: "Assign to me", group: "Inbox", keys: "m", isOnce: true, run: take }];
  }, [isMine, me, mutate]);
  useCommands(commands);
  const others = names.filter((name) => name !== me && name !== assignee);
  return (
    <>
      <Menu
        trigger={
          <button type="button" className="small" disabled={assign.isPending}>
            <UserRound aria-hidden size={14} strokeWidth={1.75} />
            {assignee === undefined ? "Assign" : `Assigned to ${truncate(assignee, NAME_CHARACTERS)}`}
            <ChevronDown aria-hidden size={14} />
          </button>
        }
        items={[
          ...(assignee === undefined || assignee !== me
            ? [
                {
                  label: me === "" ? "Assign to me…" : `Assign to me (${truncate(me, NAME_CHARACTERS)})`,
                  onSelect: () => (me === "" ? setAsking("me") : assign.mutate(me)),
                },
              ]
            : []),
          ...others.map((name) => ({
            label: `Assign to ${truncate(name, NAME_CHARACTERS)}`,
            onSelect: () => assign.mutate(name),
          })),
          { label: "Assign to somebody else…", onSelect: () => setAsking("other") },
          ...(assignee === undefined ? [] : [{ label: "Unassign", onSelect: () => assign.mutate(null) }]),
        ]}
      />
      <ErrorNotice error={assign.error} />
      {asking !== undefined && (
        <NameDialog
          isMe={asking === "me"}
          onClose={() => setAsking(undefined)}
          onName={(name) => {
            if (asking === "me") onMe(name);
            assign.mutate(name);
            setAsking(undefined);
          }}
        />
      )}
    </>
  );
};

const NameDialog = ({
  isMe,
  onName,
  onClose,
}: {
  isMe: boolean;
  onName(name: string): void;
  onClose(): void;
}) => {
  const [name, setName] = useState("");
  const id = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (name.trim() !== "") onName(name.trim());
  };
  return (
    <Dialog title={isMe ? "Assign to me" : "Assign to somebody else"} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label htmlFor={id}>{isMe ? "Your name" : "Name"}</label>
        <input
          id={id}
          value={name}
          maxLength={100}
          autoComplete={isMe ? "name" : "off"}
          onChange={({ target }) => setName(target.value)}
        />
        <p className="faint">
          The thread keeps the name as <code>assignee</code> in its metadata.
          {isMe && " This browser remembers your name."}
        </p>
        <div className="row">
          <button type="submit" className="primary" disabled={name.trim() === ""}>
            Assign
          </button>
        </div>
      </form>
    </Dialog>
  );
};
