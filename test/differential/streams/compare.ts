/** Streams a case through the API and by LangGraph alone, and says where they differ. */
import { apiOf } from "../../helpers/api.ts";
import { openStream, readStream, type SentEvent } from "../../helpers/server-sent-events.ts";
import { createAlone, type Given, type Told } from "./alone.ts";
import type { StreamCase, Turn } from "./case.ts";
import { normal } from "./normal.ts";

const WATCHED = {
  channels: ["values", "updates", "messages", "tools", "custom", "lifecycle", "checkpoints"],
};
const SHOWN_CHARACTERS = 1_500;

const cut = (text = "nothing"): string =>
  text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}… (${text.length} characters)`;

const differenceOf = (what: string, expected: readonly string[], actual: readonly string[]): void => {
  const at = expected.findIndex((event, index) => event !== actual[index]);
  const first = at === -1 && actual.length > expected.length ? expected.length : at;
  if (first === -1) return;
  throw new Error(
    `${what} differs at event ${first} (of ${expected.length} and ${actual.length}):\n` +
      `  expected ${cut(expected[first])}\n  actual   ${cut(actual[first])}`,
  );
};

const isInner = ([event]: Told): boolean => event === "events";

const givenBy = (turn: Turn, index: number, interruptIds: readonly string[]): Given => {
  const input = (text: string): Given => ({
    input: { messages: [{ role: "user", content: text, id: `u${index}` }] },
  });
  switch (turn.gives) {
    case "input":
      return input(turn.text);
    case "nothing":
      return { input: null };
    case "update":
      return { command: { update: { log: [turn.text] } } };
    case "answer":
      if (interruptIds.length === 0) return input(turn.answer);
      return turn.byId
        ? { command: { resume: Object.fromEntries(interruptIds.map((id) => [id, turn.answer])) } }
        : { command: { resume: turn.answer } };
  }
};

const compareOn = async (
  url: string,
  threadId: string,
  streamCase: StreamCase,
): Promise<{ streams: number; events: number }> => {
  const { steps, modes, subgraphs, resumable, durability, stops, turns } = streamCase;
  const alone = createAlone(streamCase);
  const api = apiOf({ url });
  const runs = `${url}/threads/${threadId}/runs`;
  let events = 0;

  const interruptIdsThere = async (): Promise<string[]> =>
    (await api.state(threadId)).tasks.flatMap(({ interrupts }) => interrupts.map(({ id }) => id));

  for (const [index, turn] of turns.entries()) {
    const what = `The stream of run ${index}`;
    const asks = turn.gives === "answer";
    const expected = await alone.stream(givenBy(turn, index, asks ? await alone.interruptIds() : []));
    const live = await readStream(`${runs}/stream`, {
      body: {
        assistant_id: "drawn",
        ...givenBy(turn, index, asks ? await interruptIdsThere() : []),
        config: { configurable: { steps } },
        stream_mode: modes,
        stream_subgraphs: subgraphs,
        stream_resumable: resumable,
        durability,
        ...(stops === "never" ? {} : { [`interrupt_${stops}`]: "*" }),
      },
    });
    const [opening, ...sent] = live;
    if (opening?.event !== "metadata") throw new Error(`${what} begins with ${cut(opening?.frame)}`);
    const toldOf = ({ event, data }: SentEvent): Told => [event, data];
    const actual = sent.map(toldOf);
    // LangChain sends inner events and the graph's chunks on two ways, and the one does not wait for the other.
    for (const isOfWay of [isInner, (event: Told) => !isInner(event)])
      differenceOf(what, normal(expected.filter(isOfWay)), normal(actual.filter(isOfWay)));
    events += sent.length;
    if (!resumable) continue;
    const { run_id: runId } = opening.data as { run_id: string };
    const from = live[Math.floor((live.length * (index + 1)) / (turns.length + 2))];
    for (const after of [-1, from?.id ?? -1]) {
      const again = await readStream(`${runs}/${runId}/stream`, {
        headers: { "last-event-id": String(after) },
      });
      const frames = live.filter(({ id = -1 }) => id > after).map(({ frame }) => frame);
      differenceOf(
        `The replay after ${after} of run ${index}`,
        frames,
        again.map(({ frame }) => frame),
      );
    }
  }
  return { streams: turns.length, events };
};

/** Throws what differs. Returns the number of compared streams and events. */
export const compareStreams = async (
  url: string,
  streamCase: StreamCase,
): Promise<{ streams: number; events: number }> => {
  const threadId = await apiOf({ url }).aThread();
  if (!streamCase.watched) return await compareOn(url, threadId, streamCase);
  const watching = await openStream(`${url}/threads/${threadId}/stream/events`, { body: WATCHED });
  void watching.rest().catch(() => undefined); // it is closed below
  try {
    return await compareOn(url, threadId, streamCase);
  } finally {
    watching.close();
  }
};
