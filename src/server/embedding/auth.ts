/** The official `Auth` as `threadloom/auth`: pnpm hides packages of packages. */
export * from "@langchain/langgraph-sdk/auth";
