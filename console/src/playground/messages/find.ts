import { contentText } from "../../parts/message-text.ts";
import type { Row } from "./messages.ts";

/** Indexes of the rows with the words, oldest first. */
export const findIn = (rows: readonly Row[], words: string): number[] => {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return [];
  return rows.flatMap(({ message, more }, index) =>
    [message, ...more].some(({ content }) => contentText(content).toLowerCase().includes(wanted))
      ? [index]
      : [],
  );
};

/** As `::highlight(found)` in the style sheet. */
const NAME = "found";
const RANGES_AT_MOST = 500;

const rangesIn = (element: Element, wanted: string): Range[] => {
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (
    let node = walker.nextNode();
    node !== null && ranges.length < RANGES_AT_MOST;
    node = walker.nextNode()
  ) {
    const text = (node.nodeValue ?? "").toLowerCase();
    for (
      let start = text.indexOf(wanted);
      start !== -1 && ranges.length < RANGES_AT_MOST;
      start = text.indexOf(wanted, start + wanted.length)
    ) {
      // Lower case may be longer than the text itself.
      if (start + wanted.length > (node.nodeValue ?? "").length) break;
      const range = new Range();
      range.setStart(node, start);
      range.setEnd(node, start + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
};

/** Marks the words also in messages that appear later. @returns a function that ends it */
export const markWords = (element: Element | null, words: string): (() => void) | undefined => {
  const wanted = words.trim().toLowerCase();
  if (element === null || wanted === "" || !("highlights" in CSS)) return undefined;
  const mark = (): void => void CSS.highlights.set(NAME, new Highlight(...rangesIn(element, wanted)));
  let frame = requestAnimationFrame(mark);
  const observer = new MutationObserver(() => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(mark);
  });
  observer.observe(element, { childList: true, subtree: true, characterData: true });
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
    CSS.highlights.delete(NAME);
  };
};
