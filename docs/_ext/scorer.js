// Sphinx's own scores, and before all others a page that docs/_ext/search_words.py names for the word.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => score + (anchor === "#search-words" ? 50 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
