import { Component, type ReactNode } from "react";

/** Errors of files of the page that could not be loaded; a browser or React asks for such a file only once. */
const loadErrors = new WeakSet<Error>();
window.addEventListener("vite:preloadError", ({ payload }) => loadErrors.add(payload));

const isLoadError = (error: unknown): boolean => error instanceof Error && loadErrors.has(error);

interface ErrorBoundaryProps {
  children: ReactNode;
  /** Loads the page again by itself where a file of it is missing. */
  reloadsPage?: boolean;
}

/**
 * A fault of the page's own: says so, and keeps what is around it. Where a file of the page is missing, since the server was away or has
 * been replaced by one of another version, only loading the page again helps.
 */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { fault: unknown }> {
  override state = { fault: undefined as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { fault: error ?? new Error("no details are known") };
  }

  override componentDidCatch(error: unknown) {
    // public/loading.js does so a few times: whoever has just come to a page has written nothing in it yet.
    if (this.props.reloadsPage === true && isLoadError(error))
      dispatchEvent(new Event("threadloom:unloaded"));
  }

  override render() {
    const { fault } = this.state;
    if (fault === undefined) return this.props.children;
    const isUnloaded = isLoadError(fault);
    return (
      <div role="alert" className="notice bad">
        <h1>
          {isUnloaded ? "This part of the page could not be loaded" : "This part of the page has failed"}
        </h1>
        <p>
          {isUnloaded
            ? "The server is away, or runs another version now."
            : fault instanceof Error
              ? fault.message
              : String(fault)}
        </p>
        <button
          type="button"
          // A part that could not be loaded stays so for React, and after an update of the server it has another name.
          onClick={() => location.reload()}
        >
          Reload the page
        </button>
      </div>
    );
  }
}
