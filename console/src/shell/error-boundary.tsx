import { Component, type ReactNode } from "react";

/** Errors of page files that failed to load. Browsers and React cache the failure, so only a reload helps. */
const loadErrors = new WeakSet<Error>();
window.addEventListener("vite:preloadError", ({ payload }) => loadErrors.add(payload));

const isLoadError = (error: unknown): boolean => error instanceof Error && loadErrors.has(error);

interface ErrorBoundaryProps {
  children: ReactNode;
  /** Reload the page if one of its files fails to load. */
  reloadsPage?: boolean;
}

export class ErrorBoundary extends Component<ErrorBoundaryProps, { fault: unknown }> {
  override state = { fault: undefined as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { fault: error ?? new Error("no details are known") };
  }

  override componentDidCatch(error: unknown) {
    // public/loading.js reloads a few times. The page has just opened, so the user loses no input.
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
          // React caches the failure, and after an update the file has another name.
          onClick={() => location.reload()}
        >
          Reload the page
        </button>
      </div>
    );
  }
}
