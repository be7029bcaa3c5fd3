"""The words in the names of columns, and what they say about what a column holds."""

import re

QUERIES = (
    "query",
    "question",
    "anchor",
    "title",
    "claim",
    "prompt",
    "instruction",
    "utterance",
    "sentence1",
    "question1",
    "text1",
    "querytext",
    "questiontext",
    "docstring",
    "funcdocumentationstring",
    "q",
)
DOCUMENTS = (
    "document",
    "answer",
    "positive",
    "pos",
    "positives",
    "positivepassages",
    "positivectxs",
    "chosen",
    "correctanswer",
    "posdoc",
    "bestanswer",
    "passage",
    "text",
    "body",
    "content",
    "response",
    "reply",
    "code",
    "sentence2",
    "question2",
    "text2",
    "context",
    "answers",
    "documents",
    "passages",
    "contexts",
    "funccodestring",
    "wholefuncstring",
    "originalstring",
    "d",
)
"""Names of columns, in order: the first that is there counts. Case, spaces, - and _ make no difference."""
_OTHERS = ("id", "ids", "domain", "group", "split", "source", "sources", "url", "urls", "date")
"""What the names of other columns end with."""
_LABELS = {"label", "labels", "score", "scores", "similarity", "similar", "sim", "relevance", "relevant", "related"}
_LABELS |= {"duplicate", "match", "matches", "paraphrase", "correct", "gold", "target", "rating", "grade", "judgement"}
_LABELS |= {"judgment", "qrel", "rel", "class", "equivalent", "entailment", "selected", "accepted"}
_LABELS |= {"verdict", "feedback", "thumbs", "vote", "votes", "upvotes", "clicks", "stars", "helpful", "useful"}
_LABELS |= {"confidence", "probability", "prob", "quality", "rank"}
# fmt: off
OPPOSITES: tuple[tuple[str, str], ...] = (
    ("1", "0"), ("1", "-1"), ("true", "false"), ("yes", "no"), ("y", "n"), ("t", "f"), ("pos", "neg"),
    ("positive", "negative"), ("good", "bad"), ("up", "down"), ("correct", "wrong"), ("accepted", "rejected"),
    ("accept", "reject"), ("pass", "fail"), ("right", "wrong"), ("ja", "nein"), ("ja", "nee"), ("ja", "nej"),
    ("oui", "non"), ("sí", "no"), ("si", "no"), ("sim", "não"), ("tak", "nie"), ("да", "нет"), ("是", "否"),
    ("はい", "いいえ"), ("✓", "✗"), ("✔", "✘"), ("✅", "❌"), ("👍", "👎"), ("○", "\u00d7"), ("对", "错"),
    ("對", "錯"), ("正确", "错误"), ("相关", "不相关"), ("正解", "不正解"), ("wahr", "falsch"),
    ("richtig", "falsch"), ("vrai", "faux"), ("verdadero", "falso"), ("vero", "falso"), ("verdadeiro", "falso"),
    ("верно", "неверно"), ("نعم", "لا"), ("예", "아니오"), ("네", "아니요"),
)
# fmt: on
"""Labels of pairs and those of other rows."""
_POSITIVE = {"positive", "positives", "pos"}
_NEGATIVE = {"negative", "negatives", "neg", "negs", "hardnegative", "hardnegatives", "hardneg", "hardnegs"}
_NEGATIVE |= {"rejected", "distractor", "distractors", "incorrect", "wrong", "irrelevant"}
_TEXTS = {"text", "passage", "document", "doc", "ctx", "context", "answer", "response", "sentence", "sample", "example"}
_TEXTS |= {"code"}
_NOT_DOCUMENTS = {"is", "has", "no", "non", "not", "false", "num", "n", *QUERIES}
"""Before a word for negatives, these make another thing of them."""
_QUALIFIERS = {*_TEXTS, *(f"{word}s" for word in _TEXTS), "hard", "mined", "random", "list"}


def joined(name: str) -> str:
    """The words of a name without what is between them, in lower case."""
    return "".join(words(name))


def words(name: str) -> list[str]:
    """The words and numbers of a name, in lower case: ``hardNegative_1`` has three."""
    return re.findall(r"[^\W\d_]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def is_known(name: str) -> bool:
    """Whether a name is a usual one of a column."""
    known = joined(name) in {*QUERIES, *DOCUMENTS, *_OTHERS}
    return known or names_a_label(name) or names_negatives(name)


def names_another(name: str) -> bool:
    """Whether a column of this name holds something about the texts, but neither queries nor documents."""
    return name.lower().endswith(_OTHERS)


def names_negatives(name: str) -> bool:
    """Whether a column of this name holds hard negatives, and not their ids, scores or sources."""
    found = [word for word in words(name) if not word.isdecimal()]
    others = {word for word in found if word not in _NEGATIVE}
    if found[-1:] and found[-1] in _NEGATIVE:  # such as bm25_negatives
        return not others & _NOT_DOCUMENTS
    return len(others) < len(found) and others <= _QUALIFIERS


def names_a_label(name: str) -> bool:
    """Whether a column of this name says how well the document answers the query."""
    found = words(name) or [""]
    if found[0] == "is":
        return found[-1] in _LABELS | _POSITIVE | {"answer"}
    return found[-1] in _LABELS and not is_about_one_side(name)


def names_one_side(name: str) -> bool:
    """Whether a name is a word for positives or for negatives, and no more."""
    return names_negatives(name) or joined(name) in _POSITIVE


def is_about_one_side(name: str) -> bool:
    """Whether a column is about the positives or the negatives of a row, such as ``negative_score``."""
    found = words(name) or [""]
    return found[0] != "is" and bool({*found} & (_POSITIVE | _NEGATIVE))
