/** The hook of the newest documentation: `useStream` of `@langchain/react`, over event streaming. */
import { useStream } from "@langchain/react";
import { HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { ChatPage, parameters, textOf, type Chat } from "./chat.tsx";

const { apiUrl, assistantId, threadId: firstThread, keepThread } = parameters();

interface Values {
  messages: BaseMessage[];
}

function CurrentChat() {
  const [threadId, setThreadId] = useState(firstThread);
  const stream = useStream<Values>({
    apiUrl,
    assistantId,
    threadId,
    onThreadId: (id) => {
      keepThread(id);
      setThreadId(id);
    },
  });
  /**
   * The checkpoint before a message, where a branch begins. `useMessageMetadata` returns it, too, but in this version it names the newest
   * one for every message.
   */
  const checkpointBefore = async (messageId: string | undefined): Promise<string> => {
    const history = await stream.client.threads.getHistory<Values>(stream.threadId ?? "", { limit: 100 });
    const first = history.findLast(({ values }) => values.messages?.some(({ id }) => id === messageId));
    const checkpointId = first?.parent_checkpoint?.checkpoint_id;
    if (checkpointId == null) throw new Error("Nothing was stored before this message.");
    return checkpointId;
  };
  const say = (text: string) => ({ messages: [new HumanMessage(text)] });
  const chat: Chat = {
    threadId: stream.threadId,
    messages: stream.messages.map((message) => ({
      id: message.id ?? "",
      type: message.type,
      text: textOf(message.content),
      edit: (text) =>
        void checkpointBefore(message.id).then((forkFrom) => stream.submit(say(text), { forkFrom })),
    })),
    toolCalls: stream.toolCalls.map(({ id, name, args, output }) => ({
      id: id ?? name,
      name,
      args,
      result: output == null ? undefined : textOf(output),
    })),
    isLoading: stream.isLoading,
    isThreadLoading: stream.isThreadLoading,
    error: stream.error,
    interrupt: stream.interrupt?.value,
    send: (text) => stream.submit(say(text)),
    stop: () => void stream.stop(),
    resume: (answer) => void stream.respond(answer),
  };
  return <ChatPage chat={chat} />;
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<CurrentChat />);
