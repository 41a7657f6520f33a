import { useState, type ReactNode } from "react";

/** Laying out a text of megabytes at once holds the page up for half a minute: it comes piece by piece. */
const CHARACTERS_ADDED = 50_000;

/** The beginning of a text, and a button for more of it where there is more. */
export const LongText = ({
  text,
  characters,
  children,
}: {
  text: string;
  /** At first. */
  characters: number;
  /** Draws what is shown. */
  children(shown: string): ReactNode;
}) => {
  const [length, setLength] = useState(characters);
  if (text.length <= length) return children(text);
  const rest = text.length - length;
  return (
    <>
      {children(`${text.slice(0, length)}…`)}{" "}
      <button type="button" className="plain" onClick={() => setLength(length + CHARACTERS_ADDED)}>
        {rest <= CHARACTERS_ADDED
          ? `All ${text.length.toLocaleString("en")} characters`
          : `More of ${text.length.toLocaleString("en")} characters`}
      </button>
    </>
  );
};
