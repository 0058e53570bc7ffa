"""Write the tables of README.md and docs/results.md from the records under results/.

    python docs/results_tables.py

What stands between <!-- NAME --> and <!-- /NAME --> is replaced. results/table1/table1.md and results/table2/table2.md
are written too, and the pictures of docs/results.md are copied to where the site finds them.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # paper/ is not installed

from paper.any_number_markdown import any_number_table, attention_table  # noqa: E402
from paper.headline import headline_table  # noqa: E402
from paper.objects_markdown import objects_table  # noqa: E402
from paper.race import race_table  # noqa: E402
from paper.table1_markdown import table1  # noqa: E402
from paper.table2_details import permuted_table, table2  # noqa: E402
from paper.table2_markdown import either_on_top_table, main_table  # noqa: E402

RESULTS = ROOT / "results"
PICTURES = {
    "table1/generalisation-shapes-layernorm.png": "generalisation.png",
    "table2/figure5.png": "figure5.png",
    "table2/labels.png": "labels.png",
    "objects/tetrominoes.png": "tetrominoes.png",
    "objects/sprites.png": "sprites.png",
    "objects/sprites-one-colour.png": "sprites-one-colour.png",
    "objects/sprites-texture.png": "sprites-texture.png",
}
"""Below results/ -> below docs/images/."""


def pages() -> dict[str, dict[str, str]]:
    """Path of a page -> name of a block -> what stands between its marks."""
    papers = RESULTS / "table2"
    former = papers / "either-on-top"
    either = f"{either_on_top_table(former, '..')}\n\n{permuted_table(former)}"
    return {
        "README.md": {"headline": headline_table(RESULTS)},
        "docs/results.md": {
            "table1": table1(RESULTS / "table1", "..").strip(),
            "any-number": any_number_table(RESULTS / "table1", ".."),
            "group-attention": attention_table(RESULTS / "group_attention", ".."),
            "table2": f"{main_table(papers, '..')}\n\n{permuted_table(papers)}",
            "either-on-top": either,
            "objects": objects_table(RESULTS / "objects", ".."),
            "race": race_table(RESULTS / "objects", ".."),
        },
        "results/table1/table1.md": {"": table1(RESULTS / "table1")},
        "results/table2/table2.md": {"": table2(papers)},
    }


def replaced(text: str, blocks: dict[str, str], page: str) -> str:
    """The text of a page with what stands between the marks of each block replaced; without a name, all of it."""
    for name, block in blocks.items():
        if not name:
            return block
        marks = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        if not marks.search(text):
            raise ValueError(f"{page} lacks the marks <!-- {name} --> and <!-- /{name} -->")
        text = marks.sub(lambda found, block=block: found[1] + block + found[2], text)
    return text


if __name__ == "__main__":
    for page, blocks in pages().items():
        path = ROOT / page
        path.write_text(replaced(path.read_text(), blocks, page))
    for record, picture in PICTURES.items():
        shutil.copyfile(RESULTS / record, ROOT / "docs" / "images" / picture)
