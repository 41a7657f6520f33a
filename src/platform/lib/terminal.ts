import { destination as openDestination, type DestinationStream } from "pino";

const STANDARD_OUTPUT = 1;

/**
 * Opens a terminal. Writes to a closed terminal fail silently: they must not end the process, which has runs to hand
 * back.
 * @param onGone called once, when a write fails
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
