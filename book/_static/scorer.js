/* How the search ranks: chapters before the glossary and other lists, a page before one of its sections.
   Sphinx weighs an entry of the index by up to 100, a title by 16; here a whole entry counts a little more than
   a title, a part of one less.
   The other weights are Sphinx's own. */
var Scorer = {
  score: ([page, , anchor, , weight]) =>
    (weight > 16 ? weight / 4 : weight) + (page.startsWith("notebooks/") ? 20 : 0) + (anchor ? 0 : 5),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
