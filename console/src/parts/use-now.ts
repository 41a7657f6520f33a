import { useEffect, useState } from "react";

/** In milliseconds, updated every second while `isTicking`. */
export const useNow = (isTicking: boolean): number => {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isTicking) return;
    const renew = (): void => setNow(Date.now());
    const first = setTimeout(renew);
    const timer = setInterval(renew, 1_000);
    return () => {
      clearTimeout(first);
      clearInterval(timer);
    };
  }, [isTicking]);
  return now;
};
