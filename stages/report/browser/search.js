// Which pairs contain all words of a search, in their query or in their document.
let lowered;

/** Return the words of a search, in lower case. */
function wordsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 8);
}

/** Return a byte for each pair: 1 if it contains all words. */
function pairsWith(words, texts) {
  lowered ??= texts.texts.map(text => text.toLowerCase());
  const all = (1 << words.length) - 1;
  const held = new Uint8Array(lowered.length);
  words.forEach((word, bit) => {
    for (let place = 0; place < lowered.length; place++) if (lowered[place].includes(word)) held[place] |= 1 << bit;
  });
  return Uint8Array.from(texts.query, (query, pair) => (held[query] | held[texts.document[pair]]) === all);
}
