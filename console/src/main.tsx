import "./design/tokens.css";
import "./design/elements.css";
import { lazy, StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { ignoreSecondClicks } from "./shell/double-clicks.ts";
import { useHashLocation } from "./shell/hash-location.ts";
import { PreloadPage } from "./shell/preload-page.ts";
import { SignInGate } from "./shell/sign-in.tsx";
import { Shell } from "./shell/shell.tsx";
import { ErrorBoundary } from "./shell/error-boundary.tsx";

const root = document.getElementById("console");
if (root === null) throw new Error("The page has no place for the console.");

// Read by public/loading.js.
document.documentElement.dataset["console"] = "begun";

ignoreSecondClicks();

/** Only `npm run dev:console` has it, which has no API to sign in to. */
const Gallery =
  import.meta.env.DEV && location.hash === "#/gallery"
    ? lazy(() => import("./gallery/gallery.tsx"))
    : undefined;

createRoot(root).render(
  <StrictMode>
    <ErrorBoundary>
      {Gallery === undefined ? (
        <Router hook={useHashLocation}>
          <PreloadPage />
          <SignInGate>
            <Shell />
          </SignInGate>
        </Router>
      ) : (
        <Suspense>
          <Gallery />
        </Suspense>
      )}
    </ErrorBoundary>
  </StrictMode>,
);
