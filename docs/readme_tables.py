"""Write the tables of the README anew from the records under results/.

    python docs/readme_tables.py

What stands between <!-- table1 --> and <!-- /table1 --> is replaced, and table2's alike once there are records of it;
results/table1/table1.md and table2.md are written too, and the pictures below them are copied to where the site
finds them.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from paper.table1 import table1
from paper.table2_page import main_table, permuted_table, table2

ROOT = Path(__file__).parents[1]
FIRST = """Shapes, test split of 10,000 scenes, the paper's figures beside ours. `taggernet reproduce table1` writes the
[records](results/table1) and the table.

{table}
![What the LayerNorm models do with other numbers of groups, objects and iterations](docs/images/generalisation.png)

*Beyond the table: AMI and empty groups of the LayerNorm models for other numbers of groups and objects than in training
(the orange frame), what becomes of a scene, and how AMI depends on overlap and on like shapes (mean and spread of five
seeds; [record](results/table1/generalisation-shapes-layernorm.json), [worst
scenes](results/table1/worst-shapes-layernorm.png); the same of [our best
recipe](results/table1/generalisation-shapes-best.png)). Figure 4: [picture](results/table1/figure4.png),
[PDF](results/table1/figure4.pdf).*"""
SECOND = """TextureMNIST, test split of 10,000 scenes, errors in percent, the paper's beside ours. `taggernet reproduce
table2` writes the [records](results/table2) and [all that stands around this table](results/table2/table2.md). Our FC
Tagger reads a group's class from its mask, by fresh layers beside the Ladder; fresh layers on top of it, as in the
paper, have a row of their own ([why](docs/LOG.md)). Our recipe is the same network on fresh compositions of the same
50,000 digits; with few labels its reader also learns from scenes without any. The baselines were tuned on validation as
Tagger was: they see their scenes whitened, which knows nothing of images and lowers all errors of MLP and Ladder, and
those of the ConvNet with few labels ([by how much](docs/LOG.md); with all labels the ConvNet takes them as they are).
With one digit and 1,000 labels the Ladder is then level with Tagger by the paper's protocol, with 3,000 the ConvNet is,
and with more it is ahead; with two digits Tagger is ahead of both at any number of labels.

{table}

{permuted}

Nothing in Tagger knows of neighbours: it keeps its error when the elements are shuffled, the ConvNet does not.

![Test error over the number of labels, one panel per data set](docs/images/labels.png)

*How errors fall with the number of labels (mean and spread over seeds, [table](results/table2/table2.md),
[PDF](results/table2/labels.pdf); our own recipe has been run with 1,000 and 50,000 alone).*

![Scenes of two digits with their groups, and the inference over iterations](docs/images/figure5.png)

*Figure 5: scenes and groups in descending AMI, one digit (D), a scene (E1) with its upper digit taken away (E2), the
inference over iterations, and what class each group says ([PDF](results/table2/figure5.pdf); a model of the FC Tagger
row with all labels).*"""


def blocks() -> dict[str, str]:
    """Name of a table -> what stands between its marks."""
    found = {"table1": FIRST.format(table=table1(Path("results/table1"), linked=True))}
    records = Path("results/table2")
    if list(records.glob("*texture-mnist-*.json")):
        found["table2"] = SECOND.format(table=main_table(records).strip(), permuted=permuted_table(records))
    return found


def renewed(text: str, blocks: dict[str, str], page: str) -> str:
    """The text of a page with what stands between the marks of each block replaced by it."""
    for name, block in blocks.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        if not mark.search(text):
            raise ValueError(f"{page} lacks the marks <!-- {name} --> and <!-- /{name} -->")
        text = mark.sub(lambda found, block=block: found[1] + block + found[2], text)
    return text


def filled(text: str) -> str:
    """The README with its tables renewed."""
    return renewed(text, blocks(), "README.md")


if __name__ == "__main__":
    os.chdir(ROOT)
    page = Path("README.md")
    page.write_text(filled(page.read_text()))
    for folder, table in ((Path("results/table1"), table1), (Path("results/table2"), table2)):
        if folder.exists():
            (folder / f"{folder.name}.md").write_text(table(folder))
    shutil.copyfile("results/table1/generalisation-shapes-layernorm.png", "docs/images/generalisation.png")
    shutil.copyfile("results/table2/figure5.png", "docs/images/figure5.png")
    shutil.copyfile("results/table2/labels.png", "docs/images/labels.png")
