import { Component, type ReactNode } from "react";

/** A fault of the page's own: says so, and keeps what is around it. */
export class FaultBoundary extends Component<{ children: ReactNode }, { fault: string | undefined }> {
  override state = { fault: undefined as string | undefined };

  static getDerivedStateFromError(error: unknown) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }

  override render() {
    const { fault } = this.state;
    if (fault === undefined) return this.props.children;
    return (
      <div role="alert" className="notice bad">
        <p>This part of the page has failed: {fault}</p>
        <button
          type="button"
          // A part that could not be loaded stays so for React, and after an update of the server it has another name.
          onClick={() => location.reload()}
        >
          Load the page again
        </button>
      </div>
    );
  }
}
