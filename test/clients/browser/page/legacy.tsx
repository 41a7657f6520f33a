/** The hook of most apps, over run streams: `useStream` of `@langchain/langgraph-sdk/react`, set up as agent-chat-ui does. */
import { useStream, type UseStream } from "@langchain/langgraph-sdk/react";
import type { Message } from "@langchain/langgraph-sdk";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { ChatPage, parameters, textOf, type Chat } from "./chat.tsx";

const { apiUrl, assistantId, threadId: firstThread, keepThread } = parameters();

interface Values extends Record<string, unknown> {
  messages: Message[];
}

function LegacyChat() {
  const [threadId, setThreadId] = useState(firstThread);
  const stream = useStream<Values>({
    apiUrl,
    assistantId,
    threadId,
    onThreadId: (id) => {
      keepThread(id);
      setThreadId(id);
    },
    fetchStateHistory: true,
    reconnectOnMount: true,
  });
  const say = (text: string): { messages: Message[] } => ({
    messages: [{ id: crypto.randomUUID(), type: "human", content: text }],
  });
  /** Like agent-chat-ui: the typed text is shown at once. */
  const send = (text: string) => {
    const input = say(text);
    return stream.submit(input, {
      streamSubgraphs: true,
      streamResumable: true,
      optimisticValues: ({ messages = [], ...previous }: Partial<Values>) => ({
        ...previous,
        messages: [...messages, ...input.messages],
      }),
    });
  };
  const chat: Chat = {
    threadId,
    messages: stream.messages.map((message, index) => {
      const metadata = stream.getMessagesMetadata(message, index);
      const options = metadata?.branchOptions ?? [];
      const current = options.indexOf(metadata?.branch ?? "");
      return {
        id: message.id ?? "",
        type: message.type,
        text: textOf(message.content),
        branch: options.length > 1 ? `${current + 1}/${options.length}` : undefined,
        edit: (text) =>
          void stream.submit(say(text), { checkpoint: metadata?.firstSeenState?.parent_checkpoint }),
        showNextBranch: () => stream.setBranch(options[(current + 1) % options.length] ?? ""),
      };
    }),
    // The type has this field for agents only; the hook has it for all.
    toolCalls: (stream as unknown as UseStream<Values>).toolCalls.map(({ id, call, result }) => ({
      id,
      name: call.name,
      args: call.args,
      result: result && textOf(result.content),
    })),
    isLoading: stream.isLoading,
    isThreadLoading: stream.isThreadLoading,
    error: stream.error,
    interrupt: stream.interrupt?.value,
    send,
    stop: () => void stream.stop(),
    resume: (answer) => void stream.submit(undefined, { command: { resume: answer } }),
  };
  return <ChatPage chat={chat} />;
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<LegacyChat />);
