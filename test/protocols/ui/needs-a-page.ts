/** Its names can't be read without a page. */
const width = (globalThis as unknown as { document: { body: { clientWidth: number } } }).document.body
  .clientWidth;

export default { wide: () => width };
