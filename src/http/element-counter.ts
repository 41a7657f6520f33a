const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;

/**
 * Counts elements by commas outside strings. A body of 16 MB of commas is refused after half a megabyte, before it is
 * joined and decoded.
 */
export const createElementCounter = () => {
  let elements = 0;
  let isInString = false;
  let isEscaped = false;

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
