import { useEffect, useState } from "react";

/** The time in milliseconds, renewed each second while something depends on it. */
export const useNow = (isTicking: boolean): number => {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isTicking) return;
    const renew = (): void => setNow(Date.now());
    // It has stood still until now.
    const first = setTimeout(renew);
    const timer = setInterval(renew, 1_000);
    return () => {
      clearTimeout(first);
      clearInterval(timer);
    };
  }, [isTicking]);
  return now;
};
