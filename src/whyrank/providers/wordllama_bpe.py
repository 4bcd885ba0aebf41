"""Embedding of a short text without loading WordLlama's tables: a faster cold start, the same vector."""

from __future__ import annotations

import mmap
import zlib
from base64 import b85decode
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .vectors import unit_rows

# The files of wordllama 0.4: their checksums, where the numbers begin, and the mean of all rows, which takes longest.
TOKENIZER_CHECKSUM = 0x3FAF5800
TABLE_CHECKSUM = 0x56C6AE6F
_TABLE_SHAPE = (32_000, 256)
_TABLE_BYTES = 2 * 32_000 * 256
_MEAN_OF_ROWS = (
    "6f_0C#(ma3f#cIW{Re5jB=fF3fW17u61%)T1TE^ln+T3PDMB7S2>L=i_(^}fVbO`ZY+7hMqn^0EO`{OL"
    "Ib<C@Ogm6Ms&$J!aGu${`vy_H-K6Ke;mW~1iGljPUI(N+7KST6h0&Zn7xoFgwvflYC9ng#_a;C*I;_0A"
    "qe?hE?gxpzC9$x*4h@q&D9yLL{#%|s$o82&$K(?}$7bn0n+uOUtQ7#hsASr_a8jbZ)8)LqQ|!z=1%i-0"
    "RO|e`IZ<7`hOe$Z#t9)ko!-|yoGjD5sM4~%<lJvQ(Njjg?iL0;KlcSZAic;tA#aksI5Bj+Sss-=FV+RV"
    "7$D+3&U$;jDddbiiQvdRG<Al&1uZH(j~Xz&Jlvl>qr=}lgM7|C2XrpI&i>6jUgSo-rqN_Q{*U3jxb>X9"
    "lFuK#`l1CsUR@f!SCCh|%gmxZpNN$_x_8IDPX!h|c9qV&yL!Jp@Rf$VR@w+Wp@Y6Wm{JD5nmD~Z{|zQR"
    "TA)=ub8hH6T4}(%;I5v$0dhpXAXLOX)%XrQP7qbSga{%%R8F=$v5*Kn@fH?6|BYO`EqhtKXPO7RpuT@S"
    "j}wHwbwAX-XnqkrU_7inCL4e~3}@)Q86?%bto*k)ga!A!j^Q%B8&HZo`tNc)r3bCO)SMwba?y#s2e+j?"
    "mr+K&W@9nDy!I_Uql3FV)w*9j{0*}^Cwt~S#zA$w?vN$D*A+`W8Cr(D87+xBRONELgR8Z?Y*HgVg{LV!"
    "u+uHQ%-TLYbT%40-`(vzc{Yi?q=vJ-4B(VJ*5!~q3D06Z;?4v;X)jMbQ)f0lP1n0Tno3-~OL?n3r5n+_"
    "1y;E{t1Z#JINlY$clbFyo|4qP25<_!(zC$5a!v3(LSW%MkJNcQ{2>;-6oWs#c(Ay=AHwau+^1MQIaZ53"
    "s7-A=B~z$88AmX^y)VDLa#)BwF>eArvaWEw*x#JJC3i_ZyiW(c&y2u3nV!wP)S9I`6X)MO<FiLRcm<HW"
    "_KDTJ5{$IH*QTDlj+y(sC>5DK3WB3O7i$weXjj8M12mt!Q5c!MNB0cAlX=rS?#J=GTp#+nT|T_LylUq?"
    "qCE*b?X3hp3G#70NFA2Db$q}*exBI8@P?&3Qg?d2=#lum=X!)aj`18k-NSUf?CKjmoLefrM1$46-B8QC"
    "%haDeraXqdNpIXdhIz`pJL!(S5stDu@?b-~ULQC;G4lSs3=*%sp~v&R^JnzEQexb_i;gTk)iK1p_zNYy"
    "2Z5qIbf#QA63P=j+VPRS*_DyKv@6;@H06Ig8>`VctBjPq&g<j6(vti<*{IFE5=cG1s?>=+BGo)SV|%{6"
)

MAX_LETTERS = 2_000  # of a text; longer ones justify loading the tokenizer
_MAX_WORD_LETTERS = 60  # the work grows with their square
_NEVER = 1 << 30  # the rank of two tokens that are not merged
_SPACE = "▁"  # as the model spells the space before a word
_AS_JSON = {'"': b'\\"', "\\": b"\\\\"}


class Glance:
    """Memory-mapped model files that are read only where needed."""

    def __init__(self, tokenizer: bytes, table: mmap.mmap) -> None:
        self._tokenizer = tokenizer
        self._table = np.frombuffer(table, "<f2", offset=len(table) - _TABLE_BYTES).reshape(_TABLE_SHAPE)

    @classmethod
    def at(cls, tokenizer: Path, table: Path) -> Glance | None:
        """Open the files of a model, if their checksums are known."""
        try:
            spelled = tokenizer.read_bytes()
            with table.open("rb") as file:
                numbers = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # the loader of the files reports the error
            return None
        is_known = zlib.crc32(spelled) == TOKENIZER_CHECKSUM and zlib.crc32(numbers) == TABLE_CHECKSUM
        return cls(spelled, numbers) if is_known else None

    def rows(self, text: str) -> NDArray[np.float32] | None:
        """Return the token vectors of a plainly spelled text; None if its tokens are uncertain."""
        ids = self.tokens(text)
        return None if ids is None else self._table[ids].astype(np.float32)

    @property
    def common(self) -> NDArray[np.float32]:
        """Return the direction of the mean of all rows."""
        mean = np.frombuffer(b85decode(_MEAN_OF_ROWS), "<f4").astype(np.float32)
        direction: NDArray[np.float32] = unit_rows(mean[np.newaxis])[0]
        return direction

    def tokens(self, text: str) -> list[int] | None:
        """Return the tokens of a text with single spaces, printable characters and no tag; else None."""
        words = text.split(" ")
        is_plain = text.isprintable() and "<" not in text and _SPACE not in text and all(words)
        if not is_plain or len(text) > MAX_LETTERS or max(map(len, words)) > _MAX_WORD_LETTERS:
            return None
        ids = [self._number(token) for word in words for token in self._merged(_letters(_SPACE + word))]
        return None if -1 in ids else ids

    def _merged(self, tokens: Sequence[bytes]) -> list[bytes]:
        """Merge the adjacent pair with the lowest rank, leftmost first, until none is left."""
        merged = [*tokens]
        while len(merged) > 1:
            ranks = [self._ranks.get(b"%b %b" % pair, _NEVER) for pair in pairwise(merged)]
            first = min(ranks)
            if first == _NEVER:
                break
            place = ranks.index(first)
            merged[place : place + 2] = [merged[place] + merged[place + 1]]
        return merged

    def _number(self, token: bytes) -> int:
        """Return the id of a token; −1 for a character that the model encodes as bytes."""
        place = self._vocabulary.find(b'\n      "%b": ' % token)
        if place < 0:
            return -1
        begin = place + len(b'\n      "": ') + len(token)
        return int(self._vocabulary[begin : self._vocabulary.find(b"\n", begin)].rstrip(b","))

    @cached_property
    def _vocabulary(self) -> bytes:
        return self._tokenizer[self._tokenizer.index(b'"vocab": {') : self._tokenizer.index(b'"merges": [')]

    @cached_property
    def _ranks(self) -> dict[bytes, int]:
        """Return the ranks of all merges, as the file spells them, in the order they were learned."""
        begin = self._tokenizer.index(b'"merges": [')
        lines = self._tokenizer[self._tokenizer.index(b'"', begin + len(b'"merges": [')) + 1 :]
        learned = lines[: lines.rindex(b'"\n')].split(b'",\n      "')
        return dict(zip(learned, range(len(learned)), strict=True))


def _letters(word: str) -> list[bytes]:
    return [_AS_JSON.get(letter) or letter.encode() for letter in word]
