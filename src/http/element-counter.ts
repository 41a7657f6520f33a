const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;

/**
 * Counts the elements of a JSON text while it arrives, by the commas outside of strings. So a body of 16 MB that
 * consists of them is given up at the first half megabyte, before it is put together and decoded. (Brackets without
 * commas are nesting, of which the look at the whole text bears little.)
 */
export const createElementCounter = () => {
  let elements = 0;
  let isInString = false;
  let isEscaped = false;

  /** The position behind the string's end, or of the chunk's. */
  const skipString = (chunk: Uint8Array, from: number): number => {
    let index = from;
    for (; index < chunk.length; index += 1) {
      const byte = chunk[index];
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) {
        isInString = false;
        return index + 1;
      }
    }
    return index;
  };

  return {
    /** Takes the next bytes; answers how many elements there are so far. */
    add(chunk: Uint8Array): number {
      let index = isInString ? skipString(chunk, 0) : 0;
      while (index < chunk.length) {
        const byte = chunk[index];
        index += 1;
        if (byte === QUOTE) {
          isInString = true;
          index = skipString(chunk, index);
        } else if (byte === COMMA) elements += 1;
      }
      return elements;
    },
  };
};
