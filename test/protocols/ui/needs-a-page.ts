/** Can't be asked for its names without a page. */
const width = (globalThis as unknown as { document: { body: { clientWidth: number } } }).document.body
  .clientWidth;

export default { wide: () => width };
