/** Where the sources come from: the place for a search engine, or for documents of your own. */
export const search = async (question) => [
  `Encyclopedia: an entry about "${question}"`,
  `Handbook: a chapter about "${question}"`,
];
