"""python -m paper: every command at toy size, and what a mistake gets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paper import reproduce
from paper.__main__ import COMMANDS, main
from paper.baselines.sweep import errors_by_setting
from taggernet.tagger import Tagger

ROOT = Path(__file__).parents[2]


def failed(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command with a mistake prints, after status 2."""
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return shown.err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    (tmp_path / "settings.json").write_text('{"as it comes": {"whiten": 0.0}, "white": {"whiten": 0.5}}')
    return tmp_path


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


@pytest.mark.parametrize("page", ["README.md", "docs/reproducing.md", "docs/results.md"])
def test_commands_that_are_shown_exist(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every 'python -m paper COMMAND ... --option' of a page has that command and that option."""
    commands = re.findall(r"python -m paper ([a-z]\w*[^`#\n]*)", (ROOT / page).read_text())
    assert commands or page == "README.md"
    for words in map(str.split, commands):
        with pytest.raises(SystemExit) as ended:
            main([words[0], "--help"])
        assert not ended.value.code, words
        listed = capsys.readouterr().out
        assert all(word in listed for word in words if word.startswith("--")), words


def test_a_baseline_leaves_its_record(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "mlp-texture-mnist-1-1k", "--quick", "--device", "cpu", "--out", "made"]) == 0
    record = json.loads((here / "made" / "mlp-texture-mnist-1-1k.json").read_text())
    assert record["config"]["digits"] == "fixture"
    assert "test error" in capsys.readouterr().out


def test_a_sweep_ranks_settings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "sweep",
                "mlp-texture-mnist-2-1k",
                "settings.json",
                "--quick",
                "--device",
                "cpu",
                "--out",
                "new/sweep.json",
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    last = {
        name: errors[-1] for name, errors in errors_by_setting(json.loads(Path("new/sweep.json").read_text())).items()
    }
    assert [float(line.split("%")[0]) for line in lines] == pytest.approx(sorted(last.values()), abs=0.005)
    assert {line.split("%  ")[1].split(" (")[0] for line in lines} == set(last) == {"as it comes", "white"}


def test_rc_leaves_its_record(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = "--seeds 1 --train 200 --valid 20 --test 0 --iterations 1 --scenes.epochs 1 --single-shapes.epochs 1"
    assert main(f"rc {small} --no-progress --out new/rc.json".split()) == 0
    assert json.loads(Path("new/rc.json").read_text())["config"]["scenes"]["epochs"] == 1
    assert "RC trained on single_shapes: valid AMI" in capsys.readouterr().out


def test_slot_attention_leaves_its_record(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "slot-attention --data sprites --variant texture --quick --device cpu"
    assert main(command.split()) == 0
    record = json.loads((here / "results/quick/slot-attention/sprites-texture.json").read_text())
    assert record["config"]["data"]["variant"] == "texture"
    assert "ari_foreground" in capsys.readouterr().out


def test_removal_says_what_is_left(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["removal", "shapes", *["--scenes", "20", "--groups", "3", "--device", "cpu", "--out", "new/r.json"]]) == 0
    )
    record = json.loads(Path("new/r.json").read_text())
    assert (record["model"], record["split"], record["scenes"], record["groups"]) == ("shapes", "valid", 20, 3)
    assert f"{100 * record['objects_kept']:.1f} % of" in capsys.readouterr().out


def test_one_model_for_any_number_of_objects(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "any-number --quick --seeds 2 --updates 3 --group-attention 4 --no-test --device cpu"
    assert main(command.split()) == 0
    record = json.loads((here / "results/quick/table1/any-number.json").read_text())
    assert record["config"]["model"]["group_attention"] == 4
    assert "test" not in record
    assert "5 objects" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("any-number --scenes 3 --device cpu", "scenes=3 is out of range"),
        ("perfect-masks --quick --updates 0 --device cpu", "updates=0 is out of range"),
    ],
)
def test_too_few_scenes_are_one_sentence(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(command.split())
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_a_model_is_shipped(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shipped: list[object] = []
    monkeypatch.setattr("paper.shipping.ship", lambda options: shipped.append(options) or (here / "weights"))
    (here / "weights").mkdir()
    (here / "weights" / "model.safetensors").write_bytes(b"1234")
    assert (
        main(["ship", "runs/mine/seed-1", "mine", "--record", "results/mine.json", "--test", "10", "--overwrite"]) == 0
    )
    (options,) = shipped
    assert (options.run, options.name, options.record) == (Path("runs/mine/seed-1"), "mine", Path("results/mine.json"))  # type: ignore[attr-defined]
    assert (options.test, options.overwrite) == (10, True)  # type: ignore[attr-defined]


def test_an_interrupted_run_ends_with_the_status_of_ctrl_c(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> Tagger:
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "train_to_end", stop)
    assert main(["figure4", "--quick", "--results", "out", "--runs", "out"]) == 130


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("table9", "Unrecognized options: table9"),
        ("figure5 --rows tagger", "--rows"),
        ("table1 --quick --seeds 0 --results out --runs out", "seeds=0"),
        ("table1 --quick --device toaster --results out --runs out", "device 'toaster' is not known"),
        ("table2 --quick --results out --rows tager mpl-*", "rows=['tager', 'mpl-*'] name nothing of Table 2"),
        ("figure4 --model none --results out", "none"),
        ("table1 --quick --results a-file --runs out", "a-file/quick/table1 cannot be written (Not a directory)"),
        ("table2 --quick --results a-file --runs out", "a-file/quick/table2 cannot be written (Not a directory)"),
        ("figure4 --quick --results a-file --runs out", "a-file/quick/table1 cannot be written (Not a directory)"),
        ("figure5 --quick --results a-file --runs out", "a-file/quick/table2 cannot be written (Not a directory)"),
        ("baseline mlp-texture-mnist-3-1k", "did you mean mlp-texture-mnist-"),
        ("baseline mlp-texture-mnist-1-1k --quick --out a-file", "a-file cannot be written (File exists)"),
        ("sweep mlp-texture-mnist-2-2k settings.json --quick", "did you mean"),
        ("sweep mlp-texture-mnist-2-1k nowhere.json --quick", "nowhere.json is not a file"),
        ("sweep mlp-texture-mnist-2-1k a-file --quick", "a-file is not JSON"),
        ("sweep mlp-texture-mnist-1-1k settings.json --quick --out a-file/x.json", "a-file cannot be written"),
        ("rc --out a-file/rc.json", "a-file cannot be written (File exists)"),
        ("slot-attention --data clevr --quick", "data='clevr' is not known"),
        ("ship nowhere mine --to out", "does not exist"),
    ],
)
@pytest.mark.usefixtures("without_typecheck")
def test_a_mistake_is_named_before_anything_is_trained(
    command: str, words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in " ".join(failed(command, capsys).split())
    assert not list(here.glob("out/**/*.json"))


def test_training_needs_no_command_line_library() -> None:
    code = (
        "import sys\n"
        "for name in ('tyro', 'beartype'): sys.modules[name] = None\n"
        "import paper.reproduce, paper.baselines.sweep, paper.rc, paper.shipping"
    )
    path = f"{ROOT / 'src'}:{ROOT}"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": path, "OMP_NUM_THREADS": "1"})
