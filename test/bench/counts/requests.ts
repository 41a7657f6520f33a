import type { HttpClient } from "../http-client.ts";
import { HELLO } from "../scenario.ts";
import { readEvents } from "../server-sent-events.ts";

type Request = (http: HttpClient, threadId: string) => Promise<void>;

const waiting =
  (graph: string): Request =>
  async (http, threadId) => {
    const body = { assistant_id: graph, input: HELLO };
    const answer = await http.post(`/threads/${threadId}/runs/wait`, body);
    if (answer.body.includes("__error__")) throw new Error(`A run of ${graph} failed: ${answer.body}`);
  };

/** The counted requests, each on an existing thread. */
export const REQUESTS = {
  "two steps": waiting("two-step"),
  "ten steps": waiting("ten-steps"),
  async stream(http, threadId) {
    let updates = 0;
    const body = { assistant_id: "two-step", input: HELLO, stream_mode: ["updates"] };
    await http.stream(
      `/threads/${threadId}/runs/stream`,
      body,
      readEvents((name) => (updates += name === "updates" ? 1 : 0)),
    );
    if (updates !== 2) throw new Error(`A stream had ${updates} updates instead of 2.`);
  },
  async search(http) {
    const { body } = await http.post("/threads/search", { metadata: { graph_id: "two-step" }, limit: 10 });
    const found = JSON.parse(body) as unknown[];
    if (found.length !== 10) throw new Error(`A search found ${found.length} threads instead of 10.`);
  },
} satisfies Record<string, Request>;

export type RequestName = keyof typeof REQUESTS;
