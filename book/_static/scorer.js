/* How the search ranks: chapters before the glossary and other lists, a page before one of its sections.
   Sphinx weighs an entry of the index six times as much as a title; here neither counts more than the other.
   The other weights are Sphinx's own. */
var Scorer = {
  score: ([page, , anchor, , weight]) =>
    Math.min(weight, 16) + (page.startsWith("notebooks/") ? 20 : 0) + (anchor ? 0 : 5),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
