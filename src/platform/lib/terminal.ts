import { destination as openDestination, type DestinationStream } from "pino";

const STANDARD_OUTPUT = 1;

/**
 * A write to a closed terminal must not end the process, which has to hand back its runs.
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
