import "./shell/theme.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { useHashPlace } from "./shell/hash-place.ts";
import { statusOf } from "./server/connection.tsx";
import { SignInGate } from "./shell/sign-in.tsx";
import { Shell } from "./shell/shell.tsx";
import { FaultBoundary } from "./shell/fault-boundary.tsx";

/** What the caller did wrong stays wrong. */
const mayTryAgain = (tries: number, error: Error): boolean => {
  const status = statusOf(error);
  return tries < 2 && (status === undefined || status >= 500);
};

const queries = new QueryClient({
  defaultOptions: {
    queries: { retry: mayTryAgain, staleTime: 5_000, networkMode: "always" },
    mutations: { retry: false, networkMode: "always" },
  },
});

const root = document.getElementById("console");
if (root === null) throw new Error("The page has no place for the console.");

createRoot(root).render(
  <StrictMode>
    <FaultBoundary>
      <QueryClientProvider client={queries}>
        <Router hook={useHashPlace}>
          <SignInGate>
            <Shell />
          </SignInGate>
        </Router>
      </QueryClientProvider>
    </FaultBoundary>
  </StrictMode>,
);
