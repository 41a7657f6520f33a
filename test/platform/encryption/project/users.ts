/** Every caller is who they claim to be, and may do everything. */
import { Auth } from "@langchain/langgraph-sdk/auth";

export const auth = new Auth()
  .authenticate((request: Request) => ({
    identity: request.headers.get("x-user") ?? "nobody",
    permissions: [],
  }))
  .on("*", () => true);
