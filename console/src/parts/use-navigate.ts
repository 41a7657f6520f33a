import { useCallback, useEffect, useRef } from "react";
import { useLocation } from "wouter";

type Navigate = ReturnType<typeof useLocation>[1];

/**
 * Navigates only while the calling component is shown, for what happens after an answer of the server. A user
 * who has opened another page stays there.
 */
export const useNavigate = (): Navigate => {
  const [, navigate] = useLocation();
  const isShown = useRef(false);
  useEffect(() => {
    isShown.current = true;
    return () => void (isShown.current = false);
  }, []);
  return useCallback<Navigate>(
    (...to) => {
      if (isShown.current) navigate(...to);
    },
    [navigate],
  );
};
