"""Analysis in many threads: the pure-Python stemmer keeps state while it works."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
sys.modules["Stemmer"] = None  # the pure-Python stemmers, as a default install has them
sys.setswitchinterval(1e-5)
from concurrent.futures import ThreadPoolExecutor
from whyrank.analysis.tokenizer import stem
words = [w for i in range(300) for w in (f"running{'s' * (i % 3)}", "generously", "connection", "happily", "nations")]
expected = [stem(word, "en") for word in words]
with ThreadPoolExecutor(6) as pool:
    answers = list(pool.map(lambda _: [stem(word, "en") for word in words], range(12)))
print(all(answer == expected for answer in answers))
"""


def test_threads_do_not_share_a_stemmer() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
