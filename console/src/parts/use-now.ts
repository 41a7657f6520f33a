import { useEffect, useState } from "react";

/** In milliseconds, updated every `everyMs` while `isTicking`. */
export const useNow = (isTicking: boolean, everyMs = 1_000): number => {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isTicking) return;
    const renew = (): void => setNow(Date.now());
    const first = setTimeout(renew);
    const timer = setInterval(renew, everyMs);
    return () => {
      clearTimeout(first);
      clearInterval(timer);
    };
  }, [isTicking, everyMs]);
  return now;
};
