"""The sample page of `whyrank eval`: the example memory as an evaluation set, measured and kept in `docs/sample/`."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from whyrank.interfaces.cli.main import main as whyrank

ROOT = Path(__file__).parent.parent
RECIPES = ("default", "openclaw-2026-02")


def written(folder: Path) -> Path:
    """Write the example memory as an evaluation set."""
    made = folder / "example-memory"
    shutil.copytree(ROOT / "examples" / "memory", made / "files")
    lines = (ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    asked = [{key: question[key] for key in ("id", "text", "kind")} for question in questions if question.get("target")]
    (made / "queries.jsonl").write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in asked), "utf-8")
    judged = [f"{question['id']}\t{question['target']}\t1" for question in questions if question.get("target")]
    (made / "qrels.tsv").write_text("\n".join(("query\tdocument\tgain", *judged)), "utf-8")
    return made


def main() -> None:
    out = ROOT / "docs" / "sample"
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="whyrank-sample-") as place:
        recipes = [word for recipe in RECIPES for word in ("--recipe", recipe)]
        kept = ["--keep", str(out / "eval.json"), "--html", str(out / "eval.html")]
        raise SystemExit(whyrank(["eval", str(written(Path(place))), *recipes, *kept, "--workspace", place]))


if __name__ == "__main__":
    main()
