/** The view and the actions of a chat page, for any hook. */
import { useState, type ReactNode } from "react";

export interface ShownMessage {
  id: string;
  type: string;
  text: string;
  /** "2/3": the second of three branches that begin with this message. */
  branch?: string;
  /** Sends another text instead of this message, which makes a branch. */
  edit(text: string): void;
  showNextBranch?(): void;
}

export interface ShownToolCall {
  id: string;
  name: string;
  args: unknown;
  result: string | undefined;
}

export interface Chat {
  threadId: string | null;
  messages: ShownMessage[];
  toolCalls: ShownToolCall[];
  isLoading: boolean;
  isThreadLoading: boolean;
  error: unknown;
  interrupt: unknown;
  /** Settles like the hook's own promise. */
  send(text: string): Promise<unknown>;
  stop(): void;
  resume(answer: unknown): void;
}

/** The query of the page's address: the server, the assistant, the thread (which a reload must keep). */
export const parameters = () => {
  const address = new URL(window.location.href);
  const required = (name: string): string => {
    const value = address.searchParams.get(name);
    if (value === null) throw new Error(`The address has no ${name}.`);
    return value;
  };
  return {
    apiUrl: required("api"),
    assistantId: required("assistant"),
    threadId: address.searchParams.get("thread"),
    keepThread(threadId: string): void {
      address.searchParams.set("thread", threadId);
      window.history.replaceState(null, "", address);
    },
  };
};

export const textOf = (content: unknown): string => {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return JSON.stringify(content);
  return content
    .map((block: { type?: string; text?: string }) => (block.type === "text" ? (block.text ?? "") : ""))
    .join("");
};

const describe = (error: unknown): string =>
  error instanceof Error ? error.message : typeof error === "string" ? error : JSON.stringify(error);

export function ChatPage({ chat }: { chat: Chat }): ReactNode {
  const [text, setText] = useState("");
  const [unsettled, setUnsettled] = useState(0);
  const send = (): void => {
    const settle = (): void => setUnsettled((count) => count - 1);
    setUnsettled((count) => count + 1);
    chat.send(text).then(settle, settle);
  };
  return (
    <main
      data-sending={unsettled > 0}
      data-loading={chat.isLoading}
      data-thread={chat.threadId ?? ""}
      data-ready={!chat.isThreadLoading}
    >
      <ol aria-label="messages">
        {chat.messages.map((message, index) => (
          <li key={message.id || index} data-type={message.type}>
            <span className="text">{message.text}</span>
            {message.type === "human" && (
              <button onClick={() => message.edit(text)}>Send in place of this</button>
            )}
            {message.branch !== undefined && (
              <button onClick={message.showNextBranch}>Branch {message.branch}</button>
            )}
          </li>
        ))}
      </ol>
      <ul aria-label="tool calls">
        {chat.toolCalls.map(({ id, name, args, result }) => (
          <li key={id}>
            {name}({JSON.stringify(args)}) = {result ?? "?"}
          </li>
        ))}
      </ul>
      {chat.interrupt !== undefined && (
        <section aria-label="interrupt">
          <pre>{JSON.stringify(chat.interrupt)}</pre>
          <button onClick={() => chat.resume({ decision: "approve" })}>Approve</button>
          <button onClick={() => chat.resume({ decision: "reject" })}>Reject</button>
        </section>
      )}
      {chat.error != null && <p role="alert">{describe(chat.error)}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <input aria-label="text" value={text} onChange={(event) => setText(event.target.value)} />
        <button type="submit">Send</button>
        <button type="button" onClick={() => chat.stop()}>
          Stop
        </button>
      </form>
    </main>
  );
}
