import { describeChat } from "./chat-scenarios.ts";

const TRAITS = { branches: true, keepsLeftMessages: false, follows: false, sendsFromKnownState: true };

describeChat("`useStream` of SDK 1.12.4", { entry: "legacy.tsx" }, TRAITS);

if (process.env.SDK_LINES === "all")
  describeChat(
    "`useStream` of SDK 1.8.10",
    { entry: "legacy.tsx", alias: { "@langchain/langgraph-sdk": "sdk-1.8" } },
    TRAITS,
  );
