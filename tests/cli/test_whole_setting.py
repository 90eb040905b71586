"""`--setting`: one text in place of the options it stands for, in every analysis."""

import re
import shlex

import pytest
from commandline import ANALYSES

from whitelab.cli import spaces

# command, its setting as one text, the same by options
SAME = {
    "score": ("score", "cls/L1+L-1:soft:gamma=0.25@5 aggregate=mean fit=cross"),
    "score usual": ("score", "L-1"),
    "score wk": ("score", "wk/L2:zca@3"),
    "kcurve": ("kcurve", "mean/L1+L2:zca aggregate=wmean"),
    "fitsize": ("fitsize", "mean/L1+L2:zca@3 aggregate=wmean"),
    "layers": ("layers", "cls/L-1:pca@4 fit=cross"),
    "layers --size": ("layers --size 1-2", "L-1 aggregate=mean"),
    "geometry": ("geometry", "L-1:pca@3"),
    "similarity": ("similarity", "cls/L-1:zca@3 fit=cross"),
    "bits": ("bits --codes int8,binary", "L1+L2:zca@3 aggregate=wmean fit=cross"),
    "calibrate": ("calibrate", "cls/L-1:zca@3 fit=cross"),
}
OPTIONS = {
    "score": "--pooling cls --layers=1,-1 --whitening soft:gamma=0.25 --k 5 --aggregate mean --fit cross",
    "score usual": "",
    "score wk": "--pooling wk --layers 2 --whitening zca --k 3",
    "kcurve": "--layers L1+L2 --whitening zca --aggregate wmean",
    "fitsize": "--layers 1,2 --whitening zca --k 3 --aggregate wmean",
    "layers": "--pooling cls --whitening pca --k 4 --fit cross",
    "layers --size": "--aggregate mean",
    "geometry": "--k 3",
    "similarity": "--pooling cls --whitening zca --k 3 --fit cross",
    "bits": "--layers 1,2 --whitening zca --k 3 --aggregate wmean --fit cross",
    "calibrate": "--pooling cls --whitening zca --k 3 --fit cross",
}


@pytest.mark.parametrize("case", SAME)
def test_a_setting_is_the_options_it_stands_for(document, model, place, case):
    command, setting = SAME[case]
    argv = [*command.split(), *model, "--data", place / "tasks"]
    whole, apart = document(*argv, "--setting", setting), document(*argv, *OPTIONS[case].split())
    for record in (whole, apart):
        record.pop("seconds", None)
    assert whole == apart


@pytest.mark.parametrize("command", ["score", "calibrate", "retrieve", "calibrate --search"])
def test_the_setting_that_a_record_names_gives_the_same_record(document, model, place, command):
    search = command == "retrieve" or "--search" in command
    argv = [*command.split(), *model, "--data", place / ("search" if search else "tasks")]
    record = document(*argv, "--layers=1,-1", "--whitening", "soft", "--k", "5", "--fit", "both" if search else "cross")
    assert record["setting"].startswith("mean/L1+L3:soft:gamma=0.5,alpha=0@5 fit=")
    assert document(*argv, "--setting", record["setting"]) == record


def test_a_setting_may_name_other_text_with_blanks(document, options, tmp_path):
    path = tmp_path / "other text; 100 % new.txt"
    path.write_text("".join(f"Sentence {i} about thing {i % 7}.\n" for i in range(40)))
    setting = f"L1:pca@4 fit={path}".replace("%", "%25").replace(";", "%3B")
    record = document("score", *options, "--setting", setting)
    assert (record["protocol"]["fit"], record["fitted"]) == (str(path), 40)


def test_vectors_take_a_setting_that_leaves_pooling_alone(document, run, options, tmp_path):
    out = tmp_path / "own.npz"
    document("embed", *options, "--out", out)
    record = document("score", "--vectors", out, "--setting", "L1:pca@3")
    assert (record["protocol"]["pooling"], record["protocol"]["k"]) == ("given", 3)
    status, _, err = run("score", "--vectors", out, "--setting", "cls/L1")
    assert status == 2
    assert "pooling='cls' does not go with --vectors" in err


@pytest.mark.parametrize("command", ["calibrate", "whiten --export npz --out"])
def test_a_setting_that_was_scored_is_one_to_ship(document, model, place, tmp_path, command):
    data = (*model, "--data", place / "tasks")
    options = ("--layers", "1", "--whitening", "pca", "--k", "4", "--fit", "cross", "--aggregate", "mean")
    setting = document("score", *data, *options)["setting"]
    assert setting == "mean/L1:pca@4 aggregate=mean fit=cross"
    words = [*command.split(), *([tmp_path / "map.npz"] if command.startswith("whiten") else []), *data, "--setting"]
    assert document(*words, setting) == document(*words, setting.replace(" aggregate=mean", ""))


@pytest.mark.parametrize("command", [*(name for name in ANALYSES if name != "embed"), "retrieve", "whiten"])
def test_the_settings_that_help_shows_are_those_the_command_takes(run, model, place, monkeypatch, command):
    def reached(*_):
        raise ValueError("nothing was refused before a model is loaded")

    monkeypatch.setattr(spaces, "load_model", reached)
    settings = re.findall(r"'(mean/[^']+)'", " ".join(run(command, "--help")[1].split()))
    data = ("--data", place / ("search" if command == "retrieve" else "pairs.csv"))
    words = (*data, *(("--export", "npz", "--out", "x") if command == "whiten" else ()))
    assert settings
    for setting in settings:
        assert "nothing was refused" in run(command, *model, *words, "--setting", setting)[2]


REFUSED = {
    "layers twice": ("score --layers 1 --setting L2", "--layers 1 does not go with --setting, which says all of it"),
    "k twice": ("score --k 3 --setting L2:pca@3", "--k 3 does not go with --setting"),
    "whitening twice": ("score --whitening pca --setting L2", "--whitening pca does not go with --setting"),
    "pooling twice": ("score --pooling cls --setting cls/L2", "--pooling cls does not go with --setting"),
    "fit twice": ("score --fit cross --setting L2:pca", "--fit cross does not go with --setting"),
    "aggregate twice": ("score --aggregate mean --setting L2", "--aggregate mean does not go with --setting"),
    "the usual whitening": ("geometry --whitening pca --setting L2", "--whitening pca does not go with --setting"),
    "the usual pooling": ("score --pooling mean --setting cls/L2", "--pooling mean does not go with --setting"),
    "the usual fit": ("score --fit task --setting 'L2:pca fit=cross'", "--fit task does not go with --setting"),
    "the usual aggregate": (
        "score --aggregate all --setting 'L2 aggregate=mean'",
        "--aggregate all does not go with --setting",
    ),
    "each layer twice": ("kcurve --layers each --setting L2:pca", "--layers each does not go with --setting"),
    "a k where all are gone through": ("kcurve --setting L1:pca@3", "must not name k: this command goes through all"),
    "layers of the pairs": ("layers --setting L1", "must not name layers: this command goes through all of them"),
    "layers of the subsets": ("layers --size 2 --setting L1", "must not name layers"),
    "layers of the geometry": ("geometry --setting L1:pca", "must not name layers"),
    "no variant": ("score --setting L2:foo", "error: in --setting L2:foo, whitening='foo' must be one of none,"),
    "no setting": ("score --setting six", "--setting six must look like L6"),
    "a k without whitening": ("score --setting L2@3", "k=3 has no meaning for whitening='none'"),
    "a layer that is not there": ("score --setting L9", "layers=[9] must lie between 0 and 3"),
    "text that is not there": ("score --setting 'L1:pca fit=nowhere.txt'", "nowhere.txt: no such file or folder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_setting_cannot_say_is_refused_in_one_line(run, options, case):
    words, message = REFUSED[case]
    command, *rest = shlex.split(words)
    status, out, err = run(command, *options, *rest)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize("option", ["--preset", "--protocol"])
def test_a_preset_goes_by_its_old_name_too(document, compared, option):
    rows = document("compare", *compared, "--settings", "L1", option, "mteb")["rows"]
    assert {row["protocol"]["max_length"] for row in rows} == {160}


def test_a_comparison_leaves_fit_and_aggregate_to_its_preset(run, compared):
    status, out, err = run("compare", *compared, "--settings", "L1:pca fit=cross")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "--settings 'L1:pca fit=cross' must leave fit and aggregate to the preset whiteningbert" in err


@pytest.mark.parametrize("command", ["score", "retrieve"])
def test_a_fit_of_what_is_fitted_to_nothing_is_said(run, model, place, command):
    argv = [command, *model, "--data", place / ("search" if command == "retrieve" else "tasks"), "--layers", "1"]
    fit = "both" if command == "retrieve" else "cross"
    for whitening, said in (("none", True), ("prefix", True), ("pca", False)):
        status, _, err = run(*argv, "--whitening", whitening, "--fit", fit, *["--k", 3] * (whitening != "none"))
        assert (status, f"--fit {fit} changes nothing: --whitening {whitening} is fitted to no text" in err) == (
            0,
            said,
        )
    assert "changes nothing" not in run(*argv)[2]
