/** Buttons that change data. */
const ACTIONS = "button.primary, button.danger";

/**
 * React disables a button only after the next render, so a double click would create two assistants, versions
 * or runs. Keyboard clicks have `detail` 0.
 */
export const ignoreSecondClicks = (): void => {
  document.addEventListener(
    "click",
    (event) => {
      const { detail, target } = event;
      if (detail < 2 || !(target instanceof Element) || target.closest(ACTIONS) === null) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    { capture: true },
  );
};
