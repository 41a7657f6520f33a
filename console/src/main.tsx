import "./shell/theme.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { takeDoubleClicksForOne } from "./shell/double-clicks.ts";
import { useHashPlace } from "./shell/hash-location.ts";
import { SignInGate } from "./shell/sign-in.tsx";
import { Shell } from "./shell/shell.tsx";
import { FaultBoundary } from "./shell/error-boundary.tsx";

const root = document.getElementById("console");
if (root === null) throw new Error("The page has no place for the console.");

// public/loading.js looks for it.
document.documentElement.dataset["console"] = "begun";

takeDoubleClicksForOne();

createRoot(root).render(
  <StrictMode>
    <FaultBoundary>
      <Router hook={useHashPlace}>
        <SignInGate>
          <Shell />
        </SignInGate>
      </Router>
    </FaultBoundary>
  </StrictMode>,
);
