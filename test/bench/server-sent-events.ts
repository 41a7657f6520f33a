import type { OnData } from "./http-client.ts";

/**
 * Splits a stream into its events when they arrive. Supports only the form of the benchmark's graphs: names, one line of data per event,
 * ASCII.
 */
export const readEvents = (onEvent: (name: string, data: string) => void): OnData => {
  let rest = "";
  return (data) => {
    const text = rest + data.toString("latin1");
    let start = 0;
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n", start)) {
      let name = "";
      let content = "";
      for (const line of text.slice(start, end).split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7).trimEnd();
        else if (line.startsWith("data: ")) content = line.slice(6);
      }
      if (name !== "") onEvent(name, content);
      start = end + 2;
    }
    rest = text.slice(start);
  };
};
