/**
 * Ids (UUIDv6) order checkpoints. LangGraph uses the clock of its process, which may step back or differ from another
 * server's.
 */

/** Without the digit of the version. */
const TIME_DIGITS = 15;

/** `id` if it is not before `newest`; else the next id after `newest`, with the random end of `id`. */
export const idAfter = (newest: string, id: string): string => {
  if (id >= newest) return id;
  const hex = newest.replaceAll("-", "");
  // An id of a version above 6 with the same first 48 bits would sort after the new one.
  const step = Number.parseInt(hex.slice(12, 13), 16) > 6 ? 0x1000n : 1n;
  const time = BigInt(`0x${hex.slice(0, 12)}${hex.slice(13, 16)}`) + step;
  const digits = time.toString(16).padStart(TIME_DIGITS, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-6${digits.slice(12)}${id.slice(18)}`;
};
