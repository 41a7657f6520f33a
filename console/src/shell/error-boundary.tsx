import { Component, type ReactNode } from "react";

/** Browsers and React cache a failed load, so only a reload of the page helps. */
const loadErrors = new WeakSet<Error>();
window.addEventListener("vite:preloadError", ({ payload }) => loadErrors.add(payload));

const isLoadError = (error: unknown): boolean => error instanceof Error && loadErrors.has(error);

interface ErrorBoundaryProps {
  children: ReactNode;
  reloadsPage?: boolean;
}

export class ErrorBoundary extends Component<ErrorBoundaryProps, { fault: unknown }> {
  override state = { fault: undefined as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { fault: error ?? new Error("no details are known") };
  }

  override componentDidCatch(error: unknown) {
    // public/loading.js reloads a few times; a new page holds no input of the user.
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
        <button type="button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </div>
    );
  }
}
