import { useState, type ReactNode } from "react";

/** The layout of a text of megabytes blocks the page for half a minute. */
const CHARACTERS_ADDED = 50_000;

export const LongText = ({
  text,
  characters,
  children,
}: {
  text: string;
  characters: number;
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
