/** Flags of `dev` alone; the server has no such options. */
const ASKED = "--open";
/** The second is the name that `langgraphjs dev` has for it. */
const UNWANTED = ["--no-open", "--no-browser"];

/** Takes the flags about the browser out of a command line. @returns `opens`: undefined if none of them is there */
export const openingIn = (argv: readonly string[]): { opens: boolean | undefined; others: string[] } => {
  const isAboutIt = (argument: string): boolean => argument === ASKED || UNWANTED.includes(argument);
  const last = argv.findLast(isAboutIt);
  return {
    opens: last === undefined ? undefined : last === ASKED,
    others: argv.filter((argument) => !isAboutIt(argument)),
  };
};

/** Whether somebody sits where a browser could open: at a terminal of this machine. */
export const isAttended = (
  environment: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean =>
  isTerminal && !environment["CI"] && !environment["SSH_CONNECTION"] && environment["BROWSER"] !== "none";

/** Opens a page in the user's browser; where there is none, that is nobody's fault: the address stands in the terminal. */
export const openPage = async (address: string): Promise<void> => {
  const { default: open } = await import("open");
  try {
    const opener = await open(address);
    opener.on("error", () => undefined);
  } catch {
    // No browser.
  }
};
