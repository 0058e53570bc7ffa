"""Tables of one model for any number of objects, and of what attention between groups changes, from their records."""

from __future__ import annotations

from pathlib import Path

from paper.any_number import AFTER, OBJECTS, SPARE, cell_of, usual_groups
from paper.markdown import links, mean_sd, table
from paper.records import Record
from taggernet.fileio import read_json

RECIPES = "src/taggernet/recipes"


def any_number_table(folder: Path, root: str = "") -> str:
    """Cost and AMI for each number of objects beside the limit, and how many objects cannot be removed."""
    record = read_json(folder / "any-number.json")
    limits = {one["objects"]: one["entropy"]["mean"] for one in read_json(folder / "bayes-limit.json")["limits"]}
    few, many = AFTER
    starts = record["starts"]
    head = ["objects, K", "cost: limit", f"T = {few}", f"T = {many}", f"mean of {starts} starts", f"AMI: T = {few}"]
    head += [f"T = {many}", f"best of {starts} starts", f"K = {SPARE}, T = {many}"]
    rows = [_row(record, objects, limits.get(objects)) for objects in OBJECTS]
    kept = record["test"]["objects_kept"]
    shares = {after: mean_sd([100 * share for share in kept[str(after)]], 1) for after in AFTER}
    where = links(RECIPES, {"record": "results/table1/any-number.json"}, root).strip()
    note = (
        f"Mean ± standard deviation over {len(record['seeds'])} seeds, {record['test']['scenes']:,} test scenes for "
        f"each number of objects {where}. Columns of {starts} starts: T = {few}, the mean of q(x) over the starts and, "
        "scene by scene, the start that explains the input best. Objects of three that keep more than half of their "
        f"ink when their group is removed: {shares[few]} % with T = {few}, {shares[many]} % with T = {many}."
    )
    return "\n".join(table("", head, rows, note))


def _row(record: Record, objects: int, limit: float | None) -> list[str]:
    few, many = AFTER
    usual, spare = (cell_of(record, "test", objects, groups) for groups in (usual_groups(objects), SPARE))
    several = {(one["objects"], one["iterations"]): one for one in record["test"]["several_starts"]}.get((objects, few))

    def after(cell: Record, metric: str, iteration: int) -> str:
        return mean_sd([row[iteration - 1] for row in cell[metric]], 4 if metric == "cost" else 3)

    return [
        f"{objects}, K = {usual['groups']}",
        "" if limit is None else f"{limit:.4f}",
        *(after(usual, "cost", iteration) for iteration in AFTER),
        "" if several is None else mean_sd(several["cost"], 4),
        *(after(usual, "ami", iteration) for iteration in AFTER),
        "" if several is None else mean_sd(several["ami"]),
        after(spare, "ami", many),
    ]


def attention_table(folder: Path, root: str = "") -> str:
    """The same recipes, seeds and updates with and without attention between the groups, on validation."""
    rows = []
    for path in sorted(folder.glob("*.json")):
        record = read_json(path)
        words = [f"{path.stem}{links(RECIPES, {'record': f'results/group_attention/{path.name}'}, root)}"]
        words += [f"{record['without']['config']['optimiser']['updates']:,}", str(record["seeds"])]
        for metric in ("cost", "ami"):
            words += [mean_sd([row[-1] for row in record[of]["valid"][metric]]) for of in ("without", "with")]
        rows.append(words)
    head = ["recipe", "updates", "n", "cost without", "with", "AMI without", "with"]
    return "\n".join(table("", head, rows))
