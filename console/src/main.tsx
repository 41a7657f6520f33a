import "./design/tokens.css";
import "./design/elements.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { ignoreSecondClicks } from "./shell/double-clicks.ts";
import { useHashLocation } from "./shell/hash-location.ts";
import { SignInGate } from "./shell/sign-in.tsx";
import { Shell } from "./shell/shell.tsx";
import { ErrorBoundary } from "./shell/error-boundary.tsx";

const root = document.getElementById("console");
if (root === null) throw new Error("The page has no place for the console.");

// Read by public/loading.js.
document.documentElement.dataset["console"] = "begun";

ignoreSecondClicks();

createRoot(root).render(
  <StrictMode>
    <ErrorBoundary>
      <Router hook={useHashLocation}>
        <SignInGate>
          <Shell />
        </SignInGate>
      </Router>
    </ErrorBoundary>
  </StrictMode>,
);
