"""The record of the RC row."""

from __future__ import annotations

import json

import pytest

from paper.rc import RCConfig, RCRun, run_rc


def test_the_record_holds_every_seed_and_their_spread() -> None:
    one = RCConfig(epochs=1)
    record = json.loads(
        json.dumps(run_rc(RCRun(one, one, 2, train=200, valid=20, test=30, iterations=2, progress=False)))
    )
    for mode in ("scenes", "single_shapes"):
        seeds = record["modes"][mode]["seeds"]
        assert [one["seed"] for one in seeds] == [0, 1]
        amis = [one["test"]["ami"] for one in seeds]
        summary = record["modes"][mode]["summary"]["test"]
        assert summary["n"] == 2
        assert summary["ami"]["mean"] == pytest.approx(sum(amis) / 2)
        assert summary["ami"]["sd"] == pytest.approx(abs(amis[0] - amis[1]) / 2**0.5)
        for one in seeds:
            assert len(one["test"]["ami_by_iteration"]) == 3
            assert one["test"]["ami_by_iteration"][-1] == pytest.approx(one["test"]["ami"], abs=1e-4)
    assert {"versions", "commit", "hardware", "config", "seconds"} <= set(record)


def test_the_test_split_is_left_alone_while_choosing() -> None:
    quick = RCConfig(hidden=8, epochs=1)
    settings = RCRun(quick, quick, seeds=1, train=100, valid=10, test=0, iterations=1, progress=False)
    record = run_rc(settings)
    assert set(record["modes"]["scenes"]["summary"]) == {"valid"}
    assert record["modes"]["scenes"]["summary"]["valid"]["ami"]["sd"] is None


@pytest.mark.usefixtures("without_typecheck")
def test_a_run_of_no_seeds_is_refused() -> None:
    with pytest.raises(ValueError, match="seeds=0"):
        RCRun(seeds=0)
