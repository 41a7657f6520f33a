import { destination as openDestination, type DestinationStream } from "pino";

/** Its file descriptor. */
const STANDARD_OUTPUT = 1;

/**
 * A terminal that was closed takes no more; that must not end the process, which has runs to hand back.
 * @param onGone called when that is noticed, by a line that could not be written
 */
export const openTerminal = (
  descriptor = STANDARD_OUTPUT,
  onGone: () => void = () => undefined,
): DestinationStream => {
  const output = openDestination({ dest: descriptor, sync: true });
  let isGone = false;
  output.on("error", () => {
    if (!isGone) onGone();
    isGone = true;
  });
  return { write: (line) => isGone || output.write(line) };
};
