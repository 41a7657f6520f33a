const OTHER = "other";
const CHARACTERS_AT_MOST = 100;

/**
 * Each value of a label is a time series in this process and in Prometheus. The returned function gives "other" for a
 * long value, an unknown one, and each new one after the first `atMost`.
 */
export const boundedLabel = (
  atMost: number,
  isKnown: (value: string) => boolean = () => true,
): ((value: string) => string) => {
  const seen = new Set<string>();
  return (value) => {
    if (seen.has(value)) return value;
    // Different lone surrogates would become the same character, and Prometheus refuses the same series twice.
    const isValid = value.length <= CHARACTERS_AT_MOST && value.isWellFormed();
    if (seen.size >= atMost || !isValid || !isKnown(value)) return OTHER;
    seen.add(value);
    return value;
  };
};
