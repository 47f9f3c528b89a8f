"""Names use the words of the field: how many do not may only shrink.

`python -m tests.tools.vocabulary` lists them. A word that is right all the same goes into
`tests/tools/vocabulary_allowed.txt` with its reason; one that is not, is replaced.
"""

from __future__ import annotations

import ast

from tests.tools import vocabulary

#: Words that no other framework uses.
UNKNOWN = 718
#: Uses of over-used words, per 100,000 names, beyond nine times their frequency elsewhere.
OVERUSED = 2600


def test_unknown_words_only_shrink() -> None:
    found = vocabulary.unknown()
    assert len(found) <= UNKNOWN, f"more than {UNKNOWN} unknown words, the rarest: {found[-9:]}"
    assert len(found) > UNKNOWN - 50, f"only {len(found)} are left: lower UNKNOWN"


def test_overused_words_only_shrink() -> None:
    found = vocabulary.overused()
    excess = sum(item.excess for item in found)
    assert excess <= OVERUSED, f"{excess:.0f} of {[item.word for item in found]}"
    assert excess > OVERUSED - 400, f"only {excess:.0f} are left: lower OVERUSED"


def test_dictionary_has_single_words_in_order() -> None:
    words = list(vocabulary.theirs().words)
    assert words == sorted(words) and len(words) <= 6000
    assert all(word.isalpha() and word.islower() for word in words)
    assert {"backward", "stride", "heaviside"} <= set(words)


def test_allowed_words_have_a_reason_and_are_used() -> None:
    assert all(vocabulary.allowed().values())
    unused = [word for word in vocabulary.allowed() if not vocabulary.ours().words[word]]
    assert unused == [], "words that no name has any more"


def test_names_are_split_into_words() -> None:
    source = "class RNNCell:\n def to_(self, in_place2): self.maxNorm = [x_grad for x_grad in y]"
    names = list(vocabulary.names_in(ast.parse(source)))
    assert sorted(names) == ["RNNCell", "in_place2", "maxNorm", "self", "to_", "x_grad"]
    words = [word for name in names for word in vocabulary.words_of(name)]
    assert sorted(words) == ["cell", "grad", "max", "norm", "place", "rnn", "self"]
