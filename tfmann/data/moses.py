"""Tokens by the rules of Moses around another segmenter: raw text in, detokenised text out.

The rules are those of the Moses toolkit (Koehn et al. 2007) in the package sacremoses. The text is
not escaped (`&apos;`), and case stays as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import final

from tfmann.data.subword import Segmenter, make_segmenter
from tfmann.errors import UserError
from tfmann.utils.files import PathLike


@final
class MosesSegmenter(Segmenter):
    """Tokenises a line before the inner segmenter, and detokenises what that has joined.

    Args:
      inner: the segmenter of tokenised text: words or BPE. It is an attribute, too.
      language: a code such as "de"; one that Moses has no rules for is treated as English.

    Raises:
      UserError: sacremoses is not installed.
    """

    def __init__(self, inner: Segmenter, language: str) -> None:
        try:
            import sacremoses
        except ImportError:
            raise UserError(
                "tokenizer='moses' needs sacremoses: pip install 'tfmann[moses]'"
            ) from None
        self.inner = inner
        self._tokenizer = sacremoses.MosesTokenizer(lang=language)
        self._detokenizer = sacremoses.MosesDetokenizer(lang=language)
        key = f"moses {sacremoses.__version__} {language} {inner.fingerprint}"
        self.fingerprint = hashlib.sha256(key.encode()).hexdigest()

    def segment(self, line: str) -> list[str]:
        """Returns the inner segmenter's tokens of the tokenised line."""
        return self.inner.segment(self._tokenizer.tokenize(line, return_str=True, escape=False))

    def join(self, tokens: Sequence[str]) -> str:
        """Returns the detokenised line."""
        words = self.inner.join(tokens).split()
        return self._detokenizer.detokenize(words, unescape=False)


def make_segmenters(
    tokenizer: str, subword_option: str, model_path: PathLike | None, languages: Sequence[str]
) -> list[Segmenter]:
    """Returns the segmenter of each language of a configuration.

    Args:
      tokenizer: "" for text that is segmented as it is, or "moses".
      subword_option: "", "bpe" or "spm", as for `make_segmenter`.
      model_path: BPE codes or a SentencePiece model.
      languages: codes, such as "de".

    Raises:
      UsageError, UserError: as `make_segmenter` and `MosesSegmenter`.
    """
    segmenter = make_segmenter(subword_option, model_path)
    if not tokenizer:
        return [segmenter] * len(languages)
    return [MosesSegmenter(segmenter, language) for language in languages]
