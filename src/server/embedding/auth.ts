/** The official `Auth` as `threadloom/auth`: package managers that hide packages of packages (pnpm) find it there. */
export * from "@langchain/langgraph-sdk/auth";
