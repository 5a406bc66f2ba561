// A query also finds the pages that docs/_ext/search_words.py names for one of its words: first the page that is named
// most often, then the page of the word that comes first. Sphinx alone wants every word on the page, or in an entry.
// A short query matches whole words alone, so that "ros" does not find "crossing"; and a page is shown once, by its best
// result.
const SHORT = 4; // letters from which a part of a word is enough

document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // any other page than the search
  const perform = Search._performSearch;
  const performObjects = Search.performObjectSearch;
  const performTerms = Search.performTermsSearch;
  const isPart = (text, word) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).includes(word);

  Search.performObjectSearch = (object, terms) =>
    performObjects(object, terms).filter((result) => object.length >= SHORT || isPart(result[1], object));

  Search.performTermsSearch = (terms, excluded) => {
    const { terms: words, titleterms } = Search._index;
    const known = (word) => Object.hasOwn(words, word) || Object.hasOwn(titleterms, word);
    const fits = (word) => word.length !== SHORT - 1 || known(word); // shorter ones Sphinx takes as a whole
    return [...terms].every(fits) ? performTerms(terms, excluded) : [];
  };

  Search._performSearch = (query, ...rest) => {
    const asked = query.toLowerCase().trim();
    const words = asked.split(/\s+/);
    const { docnames, titles, filenames, indexentries } = Search._index;
    const ours = (entry) => entry[1] === "search-words";
    const count = new Map();
    for (const word of words)
      for (const entry of indexentries[word] ?? []) if (ours(entry)) count.set(entry[0], (count.get(entry[0]) ?? 0) + 1);
    const named = [...count].sort((one, other) => other[1] - one[1]).map(([file]) => file);
    const found = perform(query, ...rest) // the best result is the last one
      .filter((result) => asked.length >= SHORT || result[2] !== "#search-words")
      .filter((result) => asked.length >= SHORT || result[6] !== "title" || isPart(result[1], asked))
      .map((result) => (result[2] === "#search-words" ? result.with(2, "").with(6, "text") : result));
    const shown = new Set();
    const once = found.reverse().filter((result) => {
      const page = result[6] === "object" ? result.slice(0, 3).join() : result[0];
      return !named.some((file) => docnames[file] === page) && !shown.has(page) && shown.add(page);
    });
    // As results of the text: so Sphinx shows an excerpt with the words.
    const first = named.map((file, n) => [docnames[file], titles[file], "", null, 1000 - n, filenames[file], "text"]);
    return [...first, ...once].reverse();
  };
});
