/* What search finds first: whoever looks for a symptom wants the page that goes from symptoms to
   what to do. The other numbers are Sphinx's own. */
var Scorer = {
  score: ([page, , , , score]) => page === 'book/is_this_you' ? score + 30 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
