const ASKED = "--open";
/** `--no-browser` is the name in `langgraphjs dev`. */
const UNWANTED = ["--no-open", "--no-browser"];

/** @returns `opens`: undefined without a flag */
export const openingIn = (argv: readonly string[]): { opens: boolean | undefined; others: string[] } => {
  const isAboutIt = (argument: string): boolean => argument === ASKED || UNWANTED.includes(argument);
  const last = argv.findLast(isAboutIt);
  return {
    opens: last === undefined ? undefined : last === ASKED,
    others: argv.filter((argument) => !isAboutIt(argument)),
  };
};

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
