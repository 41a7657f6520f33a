import { describeChat } from "./chat-scenarios.ts";

describeChat(
  "`useStream` of @langchain/react 1.1.0",
  { entry: "current.tsx" },
  { branches: false, keepsLeftMessages: true, follows: true, sendsFromKnownState: false },
);
