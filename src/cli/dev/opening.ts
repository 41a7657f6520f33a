import type { Command } from "commander";

/** Sets `open`; the last of these flags wins. */
export const onOpening = (command: Command): Command =>
  command
    .option("--open")
    .option("--no-open")
    .option("--no-browser") // as in `langgraphjs dev`
    .on("option:no-browser", () => command.setOptionValue("open", false));

export const isAttended = (
  environment: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean =>
  isTerminal && !environment["CI"] && !environment["SSH_CONNECTION"] && environment["BROWSER"] !== "none";

/** A missing browser is no error: the terminal shows the address. */
export const openPage = async (address: string): Promise<void> => {
  const { default: open } = await import("open");
  try {
    const opener = await open(address);
    opener.on("error", () => undefined);
  } catch {
    // No browser.
  }
};
