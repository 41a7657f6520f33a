const CHARACTERS_OF_NAME = 120;

export const truncate = (name: string, characters = CHARACTERS_OF_NAME): string =>
  name.length > characters ? `${name.slice(0, characters)}…` : name;
