// A query of several words also finds the pages that docs/_ext/search_words.py names for one of them: first the page
// that is named most often, then the page of the word that comes first. Sphinx alone wants every word on the page.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // any other page than the search
  const perform = Search._performSearch;
  Search._performSearch = (query, ...rest) => {
    const found = perform(query, ...rest); // the best result is the last one
    const words = query.toLowerCase().trim().split(/\s+/);
    if (words.length < 2) return found;
    const { docnames, titles, filenames, indexentries } = Search._index;
    const count = new Map();
    for (const word of words)
      for (const [file, anchor] of indexentries[word] ?? [])
        if (anchor === "search-words") count.set(file, (count.get(file) ?? 0) + 1);
    const named = [...count].sort((one, other) => other[1] - one[1]).reverse();
    return [
      ...found.filter((result) => result[2] || !named.some(([file]) => docnames[file] === result[0])),
      ...named.map(([file, n]) => [docnames[file], titles[file], "", null, 100 * n, filenames[file], "index"]),
    ];
  };
});
