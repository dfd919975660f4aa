/* How the search ranks: chapters before the glossary and other lists, a page before one of its sections, and
   a chapter whose title or entries in the index hold more of the words that were asked.
   Sphinx weighs an entry of the index by up to 100, a title by 16; here a whole entry counts a little more than
   a title, a part of one less. Of several words Sphinx counts the best alone.
   The other weights are Sphinx's own. */
var Scorer = {
  score: ([page, , anchor, , weight, file]) =>
    (weight > 16 ? weight / 4 : weight) +
    (page.startsWith("notebooks/") ? 20 : 0) +
    (anchor ? 0 : 5) +
    4 * Scorer.asked().filter((word) => Scorer.known(file).includes(word)).length,
  /* The words of the question, without those that every page holds. */
  asked: () =>
    (new URLSearchParams(location.search).get("q") ?? "")
      .toLowerCase()
      .split(/[^\p{L}\p{N}-]+/u)
      .filter((word) => word.length > 3 && word !== "what" && !stopwords.includes(word)),
  /* The title of a page and what the index names it for. */
  known: (file) => {
    if (!Scorer.words) {
      const { filenames, titles, indexentries } = Search._index;
      Scorer.words = new Map(filenames.map((name, i) => [name, titles[i].toLowerCase()]));
      for (const [entry, places] of Object.entries(indexentries))
        for (const [i] of places)
          Scorer.words.set(filenames[i], `${Scorer.words.get(filenames[i])} ${entry.toLowerCase()}`);
    }
    return Scorer.words.get(file) ?? "";
  },
  words: null,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
