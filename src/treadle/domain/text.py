"""Text into words and passages. Pure functions: the same text gives the same answer everywhere."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from treadle.errors import ArgumentError

Normalization = Literal["NFC", "NFD", "NFKC", "NFKD"]

_MARKS = ("Mn", "Mc")
# Typographic quotes are meant: addresses are printed with them.
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9])|\n\s*\n\s*")  # noqa: RUF001
_ABBREVIATED = re.compile(r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Gen|Col|Hon|No|vs)\.\s+\Z")
_LONGEST_ABBREVIATION = 8
_STAGE_DIRECTION = re.compile(
    r"[(\[]\s*(?:applause|laughter|cheers|cheering|boos?|missing text)\b[^)\]]{0,40}[)\]]", re.IGNORECASE
)


def tokenize(text: str, *, lowercase: bool = True, normalize: Normalization = "NFC") -> list[str]:
    """The words and numbers of a text, in order.

    A word is a run of letters, digits and combining marks; an apostrophe inside belongs to it (don't), a
    possessive 's does not (the nation's -> nation); dotted initials are one word without the last dot (U.S.
    -> u.s); a number keeps its commas and points (1,000.50). Scripts without spaces between words are not
    split.

    Tokens joined by spaces give the same tokens again.
    """
    text = unicodedata.normalize(normalize, text)
    if lowercase:
        # Lowering can leave a sequence that is no longer normal.
        text = unicodedata.normalize(normalize, text.lower())
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return _word_pattern(ascii_only=text.isascii()).findall(text)


@lru_cache(maxsize=2)
def _word_pattern(*, ascii_only: bool) -> re.Pattern[str]:
    """Its one group is the token; a possessive is matched after it, to be left out."""
    letter = "[A-Za-z0-9]" if ascii_only else rf"(?:[^\W_][{_combining_marks()}]*)"
    number = r"[0-9]+(?:[.,][0-9]+)+"
    initials = r"[A-Za-z](?:\.[A-Za-z])+"
    word = rf"{letter}+(?:'(?!s(?!{letter})){letter}+)*"
    return re.compile(rf"((?:{number}|{initials})(?!{letter})|{word})(?:'s(?!{letter}))*")


def _combining_marks() -> str:
    r"""A character class of the marks that belong to a letter: \w lacks them and would cut many words."""
    codes = [code for code in range(0x300, 0x20000) if unicodedata.category(chr(code)) in _MARKS]
    breaks = [0, *(at for at, (a, b) in enumerate(pairwise(codes), 1) if b != a + 1), len(codes)]
    return "".join(f"{chr(codes[start])}-{chr(codes[end - 1])}" for start, end in pairwise(breaks))


def strip_stage_directions(text: str) -> str:
    """The text without what a stenographer wrote about the audience: (Applause.), [Laughter]."""
    return _STAGE_DIRECTION.sub(" ", text)


@dataclass(frozen=True)
class _Piece:
    """A slice of the text; `closed` when a paragraph ends with it."""

    start: int
    end: int
    words: int
    closed: bool

    def __add__(self, other: _Piece) -> _Piece:
        return _Piece(self.start, other.end, self.words + other.words, other.closed)


def split_passages(text: str, *, words: int) -> list[str]:
    """Cut a text into passages of about `words` words, each a slice of the text made of whole sentences.

    A passage of at least half as many ends where its length is nearest to `words`, or at a paragraph break
    (an empty line); a shorter rest is joined to the last one. Nothing but white space is lost.

    Raises ArgumentError when `words` is below 1.
    """
    if words < 1:
        raise ArgumentError(f"words must be at least 1, got {words}")
    passages: list[_Piece] = []
    for sentence in _sentences(text):
        if passages and _belongs(passages[-1], sentence, words):
            passages[-1] += sentence
        else:
            passages.append(sentence)
    if len(passages) > 1 and 2 * passages[-1].words < words:
        passages[-2:] = [passages[-2] + passages[-1]]
    return [text[each.start : each.end].strip() for each in passages]


def _belongs(passage: _Piece, sentence: _Piece, words: int) -> bool:
    if 2 * passage.words < words:
        return True
    return not passage.closed and passage.words + sentence.words - words <= words - passage.words


def _sentences(text: str) -> Iterator[_Piece]:
    start = 0
    for found in _SENTENCE_END.finditer(text):
        if not _ABBREVIATED.search(text, max(start, found.end() - _LONGEST_ABBREVIATION), found.end()):
            yield from _piece(text, start, found.end(), closed=found.group().count("\n") > 1)
            start = found.end()
    yield from _piece(text, start, len(text), closed=True)


def _piece(text: str, start: int, end: int, *, closed: bool) -> Iterator[_Piece]:
    if count := len(text[start:end].split()):
        yield _Piece(start, end, count, closed)


STOPWORDS = frozenset(
    """
    a about above across after afterwards again against ago all almost alone along already also although
    always am among amongst an and another any anybody anyone anything are aren't around as at away back
    be became because become becomes been before behind being below beside besides between beyond both
    but by came can can't cannot come comes could couldn't did didn't do does doesn't doing don't done
    down during each either else ever every everybody everyone everything except far few for former
    formerly from further get gets getting give given go goes going gone got had hadn't has hasn't have
    haven't having he he'd he'll hence her here hereafter hereby herein heretofore herewith hers herself
    him himself his hitherto how however i i'd i'll i'm i've if in indeed into is isn't it its itself
    just keep kept know known last later least less let like likewise made make makes making many may me
    mean might mine more moreover most mr mrs much must my myself namely neither never nevertheless next
    no nobody none nor not nothing now nowhere of off often on once one only onto or other others
    otherwise ought our ours ourselves out over own per perhaps put quite rather really said same say
    see seem seemed seems seen several shall shan't she she'd she'll should shouldn't since so some
    somehow someone something sometimes somewhere still such take taken than that the their theirs them
    themselves then thence there thereby therefore therein thereof thereto these they they'd they'll
    they're they've thing things this those though through throughout thus to together too took toward
    towards two u.s under unless until up upon us use used very was wasn't we we'd we'll we're we've
    well went were weren't what whatever whatsoever when whence whenever where whereas whereby wherein
    wherever whether which while whilst who whoever whole whom whose why will with within without won't
    would wouldn't yes yet you you'd you'll you're you've your yours yourself yourselves
    """.split()  # noqa: SIM905 - words read better as text
)
"""English function words and the commonest light verbs, lower case."""
