/** What fits a line or two of a list: names may have thousands of characters. */
const CHARACTERS_OF_NAME = 120;

/** A name as lists, choices and headings show it. */
export const truncate = (name: string, characters = CHARACTERS_OF_NAME): string =>
  name.length > characters ? `${name.slice(0, characters)}…` : name;
