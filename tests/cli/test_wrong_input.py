"""Wrong input: exit 2, one line on stderr, nothing on stdout; test_each_command.py has it in a real process."""

import shutil

import pytest
import torch
from commandline import ANALYSES
from processes import run_python

from whitelab.cli import COMMANDS, main, models
from whitelab.encoding import architectures, embed

WRONG = {
    "no command": ([], "the following arguments are required: COMMAND"),
    "unknown command": (["teach"], "invalid choice: 'teach'"),
    "unknown option of a step": (
        ["corpus", "search", "a", "--query", "b", "--topp", "3"],
        "corpus search: error: unrecognized arguments: --topp 3; did you mean --top?",
    ),
    "folder of a step that is not there": (["corpus", "fit", "nowhere"], "corpus fit: error: nowhere: no such file"),
    "unknown option": (["score", "--colour", "red"], "score: error: unrecognized arguments: --colour red"),
    "an option like it": (["score", "--whitning=pca"], "arguments: --whitning=pca; did you mean --whitening?"),
    "an option by its other name": (["compare", "--protocl", "su"], "--protocl su; did you mean --protocol?"),
    "an option like none": (["score", "--verbose"], "arguments: --verbose\n"),
    "one of several misspelled": (["compare", "--markdwn"], "--markdwn; did you mean --markdown?"),
    "help misspelled": (["score", "--hlep"], "--hlep; did you mean --help?"),
    "a table of no paper": (["compare", "--settings", "table2"], "L1+L6:pca or L1+L-1:pca@256, or be 'table1'"),
    "option without value": (["score", "--layers"], "--layers: expected one argument"),
    "layers in words": (
        ["score", "--layers", "first,last"],
        "must be layer numbers with commas, such as 1,6",
    ),
    "layers empty": (["score", "--layers", ""], "must be layer numbers with commas"),
    "layer too high": (["score", "--layers", "1,9"], "--layers 1,9 must lie between 0 and 3, the last layer"),
    "layer below the first": (["score", "--layers=-5"], "--layers -5 must lie between 0 and 3"),
    "layer twice": (["score", "--layers", "1,1"], "--layers 1,1 must name at least one layer, and none twice"),
    "layer below them all": (["score", "--layers=-5"], "or between -4 and -1"),
    "unknown whitening": (["score", "--whitening", "bleach"], "'bleach' must be one of none, center"),
    "k in the variant": (["score", "--whitening", "pca@64"], "; its k goes in --k"),
    "k in the variant of a curve": (
        ["kcurve", "--whitening", "pca@64"],
        "all_but_the_top, common_component, r2, prefix, clusters, flow\n",  # which has no --k to send it to
    ),
    "unknown pooling": (["score", "--pooling", "max"], "invalid choice: 'max'"),
    "unknown aggregate": (["score", "--aggregate", "sum"], "invalid choice: 'sum'"),
    "k zero": (["score", "--whitening", "pca", "--k", "0"], "--k 0 must"),
    "k above d": (["score", "--whitening", "pca", "--k", "900"], "--k 900 must lie between 1 and d=32"),
    "k without meaning": (["score", "--whitening", "standardize", "--k", "3"], "--k 3 has no"),
    "k without whitening": (["score", "--k", "3"], "--k 3 has no"),
    "k in words": (["score", "--whitening", "pca", "--k", "many"], "invalid int value: 'many'"),
    "k for layers": (["layers", "--whitening", "pca", "--k", "33"], "--k 33 must lie between 1 and d=32"),
    "k for geometry": (["geometry", "--k", "33"], "--k 33 must lie between 1 and d=32"),
    "curve of no k": (["kcurve", "--whitening", "none"], "k has no meaning for --whitening none"),
    "layer too high for a curve": (["kcurve", "--layers", "4"], "--layers 4 must lie between 0 and 3"),
    "size in words": (["layers", "--size", "some"], "'some' must be all, a number of layers, or several such as 1-3"),
    "size backwards": (["layers", "--size", "3-1"], "'3-1' must be all, a number of layers"),
    "size with two ends": (["layers", "--size", "1-2-3"], "'1-2-3' must be all, a number of layers"),
    "size above the layers": (["layers", "--size", "1-5"], "size=5 must lie between 1 and l=4"),
    "size zero": (["layers", "--size", "0"], "--size 0 must lie between 1 and l=4"),
    "top of nothing": (["layers", "--size", "all", "--top", "0"], "--top 0 must be"),
    "a top that is none, of the pairs": (["layers", "--top", "-1"], "--top -1 must be a whole number of at least 1"),
    "top of the pairs": (["layers", "--top", "3"], "--top 3 needs --size, such as --size all"),
    "several tasks without size": (["layers", "--data", "{place}/tasks", "--task", "all"], "no task 'all'"),
    "a task that is not there": (
        ["layers", "--data", "{place}/tasks", "--task", "sts12,sts99", "--size", "1"],
        "no task 'sts99'",
    ),
    "nowhere to write, before any data is read": (
        ["whiten", "--data", "/no/such/folder", "--export", "npz", "--out", "/no/such/place/map.npz"],
        "must lie in a folder that exists",
    ),
    "columns that are not those of the pairs that are scored": (
        ["train", "--corpus", "{place}/text.txt", "--eval", "{place}/pairs.csv", "--columns", "a", "b", "c"],
        "first='a' must be one of the columns sentence1, sentence2, score",
    ),
    "columns of nothing that is scored": (["train", "--columns", "a", "b", "c"], "--columns goes with --eval"),
    "a pooling that no graph has, likewise": (
        ["whiten", "--data", "/no/such/folder", "--pooling", "wk", "--export", "onnx", "--out", "graph"],
        "--pooling wk must be one of",
    ),
    "a pooling that sentence-transformers has not, likewise": (
        [
            "whiten",
            "--data",
            "/no/such/folder",
            "--pooling",
            "wk",
            "--export",
            "sentence-transformers",
            "--out",
            "model",
        ],
        "--pooling wk must be one of",
    ),
    "a cut above all gold": (["calibrate", "--cut", "99"], "--cut 99 must divide the gold scores: 0 reach it"),
    "an objective that is none, before the corpus is missed": (
        ["train", "--objective", "nonsense"],
        "--objective nonsense must be one of simcse",
    ),
    "no steps, before any file is read": (
        ["train", "--steps", "0", "--corpus", "/no/such", "--eval", "/no/such"],
        "--steps 0 must be",
    ),
    "scores of nothing": (["train", "--corpus", "/no/such", "--eval-every", "1"], "--eval-every goes with --eval"),
    "a task of nothing": (["train", "--corpus", "/no/such", "--task", "stsb"], "--task goes with --eval"),
    "a split of nothing": (["train", "--corpus", "/no/such", "--split", "dev"], "--split goes with --eval"),
    "no such data": (["score", "--data", "/no/such/folder"], "/no/such/folder"),
    "a search set that holds no pairs": (["score", "--data", "demo-search"], "retrieve, advise and --search take it"),
    "no such search set": (["retrieve", "--data", "/no/such"], "give a file or folder, or 'demo-search'"),
    "no such task": (["score", "--data", "{place}/tasks", "--task", "sts99"], "no task 'sts99'"),
    "no such split": (["score", "--data", "{place}/tasks", "--split", "dev"], "no split 'dev'"),
    "empty file": (["score", "--data", "{place}/empty.csv"], "empty.csv"),
    "no such model": (["score", "--model", "/no/such/model"], "must be a folder with config.json"),
    "an impossible name": (
        ["score", "--model", "a/b/c"],
        "must be 'bundled', a local folder or a Hugging Face name",
    ),
    "no blocks": (["score", "--num-layers", "0"], "--num-layers 0 must lie between 1 and the model's blocks=3"),
    "too many blocks": (["embed", "--num-layers", "9"], "--num-layers 9 must lie between 1 and"),
    "too short": (["embed", "--max-length", "2"], "--max-length 2 must be a whole number of at least 3"),
    "too long": (
        ["embed", "--max-length", "5000"],
        "--max-length 5000 must lie between 3 and the model's limit=160",
    ),
    "unknown type": (["embed", "--dtype", "int8"], "invalid choice: 'int8'"),
    "slow type": (["embed", "--dtype", "float16", "--device", "cpu"], "--dtype float16 must be one of"),
    "no such folder to write to": (["embed", "--out", "/no/such/folder/out.npz"], "/no/such/folder"),
    "unknown positives": (["geometry", "--positives", "gt9"], "invalid choice: 'gt9'"),
    "port in words": (["app", "--port", "http"], "invalid int value: 'http'"),
    "datasets of nothing": (["datasets", "--data", "/no/such/folder"], "/no/such/folder"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_exits_2_with_one_clear_line(run, options, place, kind):
    words, message = WRONG[kind]
    words = [word.format(place=place) for word in words]
    argv = [words[0], *options, *words[1:]] if words and words[0] in ANALYSES else words
    status, out, err = run(*argv)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
    assert err.startswith("python -m whitelab")


BY_OPTIONS = {  # by these and the data alone
    "rate": ("calibrate --rate 2", "--rate 2.0 must lie between 0 and 1"),
    "rate of a search": ("calibrate --search --rate 0", "--rate 0.0 must lie between 0 and 1"),
    "cut that is no number": ("calibrate --cut nan", "--cut nan must be a number"),
    "cut above all gold": ("calibrate --cut 99", "--cut 99 must divide the gold scores: 0 reach it, 60 do not"),
    "cut above all grades": ("calibrate --search --cut 99", "--cut 99 must divide the grades: 0 reach it, 250 do not"),
    "words before no query": ("bits --document-prompt d:", "--document-prompt goes with a search"),
    "a model's own words": ("whiten --prompts --export npz --out x.npz", "--prompts goes with a search"),
    "variant beside": ("bits --beside bleach", "--beside bleach must be one of"),
    "seed": ("bits --seed -1", "--seed -1 must be a whole number"),
    "seed of fitsize": ("fitsize --seed -1", "--seed -1 must be a whole number"),
    "corpus": ("bits --corpus 9", "--corpus 9 must be at least n="),
    "two maps in an index": ("bits --corpus 900 --fit cross", "--fit cross fits 2 maps"),
    "something else where to write": (
        "whiten --export npz --out {place}/pairs.csv",
        "is not an earlier export of",
    ),
    "a file where a folder goes": ("whiten --export onnx --out {place}/pairs.csv", "is not an earlier export of"),
    "modules to export": (
        "whiten --model output:bundled --export onnx --out {place}/none",
        "--model output:bundled must be a transformer in ONNX, and it is what its modules make of the last layer; the "
        "map alone can be exported (npz, faiss, safetensors)",
    ),
    "words to export": (
        "whiten --model sif:bundled --export sentence-transformers --out {place}/none",
        "--model sif:bundled must be a transformer in sentence-transformers, and it is a table of word embeddings",
    ),
    "pairs' own scope of a search": ("retrieve --fit task", "--fit task has no meaning without pairs; use corpus"),
    "columns of a search": ("calibrate --search --columns a b c", "--search does not go with --columns"),
    "columns of other tasks": ("advise --for classify --columns a b c", "--columns goes with pairs, not with texts"),
    "columns and splits": (
        "score --whitening pca --fit splits --columns a b c",
        "--fit splits has no meaning for one table, which --columns is for",
    ),
    "two columns": ("score --columns a b", "--columns a,b must name three columns"),
    "map that is not there": ("corpus apply {place}/none --out {place}/none2 --map m.npz", "there is no such file"),
    "curve of no k": ("kcurve --whitening none", "k has no meaning for --whitening none"),
    "curve of a search": ("retrieve --every-k", "k has no meaning for whitening='none'"),
    "curve of new weights": ("retrieve --every-k --whitening soft:gamma=auto", "weighs its directions anew at each k"),
    "another model": ("similarity --against /no/such", "--against /no/such must be a folder"),
    "workers": (
        "corpus embed --out {place}/none --text {place}/text.txt --engine processes --workers 0",
        "--workers 0 must be",
    ),
    "workers of one process": (
        "corpus embed --out {place}/none --text {place}/text.txt --workers 2",
        "--workers 2 goes with --engine processes or ray",
    ),
    "gpus": (
        "corpus embed --out {place}/none --text {place}/text.txt --gpus 1",
        "address and gpus go with engine='ray'",
    ),
    "map and k": ("corpus apply {place}/none --out {place}/none2 --map m.npz --k 3", "--k does not go with --map"),
    "map and variant": (
        "corpus apply {place}/none --out {place}/none2 --map m.npz --whitening zca",
        "--whitening does not go with --map",
    ),
    "rows of a corpus": ("corpus fit {place}/none --whitening clusters", "'clusters' is fitted to rows: of a corpus"),
    "aggregate of a comparison": (
        "compare --settings L1;aggregate=all",
        "must leave fit and aggregate to the preset whiteningbert",
    ),
    "text": ("corpus embed --out {place}/none --text {place}/nothing", "found none"),
}
BY_THE_MODEL = {
    "layer": ("score --layers 9", "--layers 9 must lie between 0 and 3"),
    "k": ("score --whitening pca --k 900", "--k 900 must lie between 1 and d=32"),
    "layer to calibrate": ("calibrate --layers 9", "--layers 9 must lie between 0 and 3"),
    "k to calibrate a search": ("calibrate --search --whitening pca --k 900", "--k 900 must lie between 1 and d=32"),
    "layer to search": ("retrieve --layers 9", "--layers 9 must lie between 0 and 3"),
    "k to search": ("retrieve --whitening pca --k 900", "--k 900 must lie between 1 and d=32"),
    "groups to search": ("retrieve --whitening group:groups=33", "groups=33 must lie between 1 and d=32"),
    "layer of codes": ("bits --layers 9", "--layers 9 must lie between 0 and 3"),
    "groups beside": ("bits --beside group:groups=33", "groups=33 must lie between 1 and d=32"),
    "k of subsets": ("layers --size 1 --whitening pca --k 33", "--k 33 must lie between 1 and d=32"),
    "layer of advice": ("advise --layers 9", "--layers 9 must lie between 0 and 3"),
    "layer of classes": ("advise --for classify --data {place}/labels.tsv --layers 9", "must lie between 0 and 3"),
    "layer of a probe": ("probe --data {place}/labels.tsv --settings L9", "layers=[9] must lie between 0 and 3"),
    "layer compared": ("compare --settings L9", "layers=[9] must lie between 0 and 3"),
}


@pytest.mark.parametrize(("words", "message"), [*BY_OPTIONS.values(), *BY_THE_MODEL.values()])
def test_no_text_is_embedded_and_no_model_loaded_that_is_not_needed_to_refuse(
    run, options, model, compared, place, monkeypatch, words, message
):
    def needless(*_, **__):
        raise AssertionError(f"{words}: refused too late")

    monkeypatch.setattr(embed, "_open_spaces", needless)
    if (words, message) in BY_OPTIONS.values():
        monkeypatch.setattr(architectures, "load", needless)
    name, *words = words.format(place=place).split()
    searched = name == "retrieve" or "--search" in words
    usual = {"compare": compared, "probe": model, "corpus": ()}.get(name, options)
    usual = [*model, "--data", str(place / "search")] if searched else usual
    status, out, err = run(name, *(words + [*usual] if name == "corpus" else [*usual, *words]))
    assert (status, out) == (2, "")
    assert message in err.splitlines()[-1]


@pytest.mark.parametrize(
    "words",
    ["score --setting", "score --split", "whiten --export npz --out x.npz --setting", "compare --settings",
     "compare --models", "similarity --against"],
)  # fmt: skip
def test_an_option_that_is_empty_as_an_unset_variable_leaves_it_is_refused(run, words):
    status, out, err = run(*words.split(), "")
    assert (status, out) == (2, "")
    assert err == f"python -m whitelab {words.split()[0]}: error: {words.split()[-1]} '' must not be empty\n"


def test_a_column_may_be_called_by_nothing_as_pandas_calls_its_index(run, model, tmp_path):
    (tmp_path / "texts.csv").write_text(",text\nr1,a man\nr2,a dog\n")
    words = ("--text", str(tmp_path / "texts.csv"), "--id-column", "", "--out", str(tmp_path / "out"))
    status, _, err = run("corpus", "embed", *words, "--model", model[1])
    assert (status, "left out" in err) == (0, False)


def test_a_split_that_was_named_and_is_not_there_is_said_to_be_all(run, options, model, place):
    named = "has no splits: --split test is all of it"
    assert f"note: pairs.csv {named}" in run("score", *options, "--split", "test")[2]
    for words in (options, (*options, "--split", "all"), (*model, "--data", place / "tasks", "--split", "test")):
        status, _, err = run("score", *words)
        assert (status, named in err) == (0, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("score --whitening pca --k 900", "k=900 must lie between 1 and d=32 -> --k 900 must lie between 1 and d=32"),
        ("score --k 3", "k=900 must lie -> k=900 must lie"),  # another's: one setting of several, say
        ("score --layers 1,9", "layers=[1, 9] must lie -> --layers 1,9 must lie"),
        ("score", "layers=[9] must lie -> layers=[9] must lie"),
        ("compare", "corpus=None must name -> --corpus must name"),
        ("download mteb", "accept them with accept_licence=True -> accept them with --accept-licence"),
        ("score", "keep the rest with keep_going=True -> keep the rest with --skip-malformed"),
        ("advise --for cluster", "purpose='cluster' must have -> --for cluster must have"),
        ("advise --gold-from 9", "gold_from=9 must divide -> --gold-from 9 must divide"),
        ("corpus fit here", "folder='here' must be -> folder='here' must be"),  # has no option
        ("corpus fit here --out here", "folder='here' must be -> folder='here' must be"),
        ("bits --codes int8,x", "quantizer='x' must be -> --codes x must be"),
        ("bits --codes x --beside x", "quantizer='x' must be -> quantizer='x' must be"),  # either may be meant
        ("similarity --against x", "model='x' is not -> --against x is not"),
        ("similarity --against bundled", "model='x' is not -> model='x' is not"),
        ("score --fit demo", "task='demo-hard' has no -> task='demo-hard' has no"),
        ("compare --settings L1;x", "setting='x' must look -> --settings x must look"),
    ],
)
def test_an_error_names_the_option_that_gave_a_value(run, monkeypatch, words, said):
    said, wanted = said.split(" -> ")
    name, *_ = words.split()

    def refused(_):
        raise ValueError(said)

    monkeypatch.setattr(COMMANDS[name][1], "run", refused)
    status, out, err = run(*words.split())
    assert (status, out) == (2, "")
    assert err.endswith(f"error: {wanted}\n")


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_this_machine_lacks_is_wrong_input(run, options, device, monkeypatch):
    for backend in (torch.cuda, torch.backends.mps):  # so that this machine lacks them, whichever it is
        monkeypatch.setattr(backend, "is_available", lambda: False)
    status, out, err = run("score", *options, "--device", device)
    assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("mistake", [ZeroDivisionError(), ModuleNotFoundError(name="whitelab.nothing")])
def test_a_mistake_of_the_program_is_not_taken_for_wrong_input(monkeypatch, mistake):
    def broken(args):
        raise mistake

    monkeypatch.setattr(models, "run", broken)
    with pytest.raises(type(mistake)):
        main(["models"])


@pytest.mark.parametrize(
    ("where", "argv", "kept"),
    [
        ("add_options", [], "interrupted"),
        ("run", [], "interrupted; finished embeddings are kept"),
        ("run", ["--no-store"], "interrupted"),
    ],
)
def test_an_interrupt_is_a_line_wherever_it_comes_and_says_what_is_kept(run, options, monkeypatch, where, argv, kept):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(COMMANDS["score"][1], where, interrupted)
    assert run("score", *options, *argv) == (130, "", f"{kept}\n")


def test_a_library_that_is_not_installed_is_named_in_one_line():
    run = run_python(
        "import sys; sys.modules['torch'] = None; from whitelab.cli import main; sys.exit(main(['score']))"
    )
    assert run.returncode == 2
    assert run.stderr.endswith("torch is not installed: run `pip install -r requirements.txt` in this environment\n")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (PermissionError(13, "Permission denied", "/somewhere/else"), "/somewhere/else: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_what_the_system_refuses_is_named_without_its_number(run, options, monkeypatch, refusal, told):
    def refused(*_):
        raise refusal

    monkeypatch.setattr(COMMANDS["score"][1], "run", refused)
    status, out, err = run("score", *options)
    assert (status, out) == (2, "")
    assert err.endswith(f"error: {told}\n")


@pytest.mark.parametrize("command", ["score", "train"])
def test_pickled_weights_are_refused_with_the_option_that_takes_them_where_there_is_one(
    run, place, tmp_path, command, monkeypatch
):
    monkeypatch.setenv("WHITELAB_RUNS", str(tmp_path / "runs"))
    folder = shutil.copytree(place / "model", tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    data = ("--data", place / "pairs.csv") if command == "score" else ("--corpus", place / "text.txt")
    status, out, err = run(command, "--model", folder, *data)
    assert (status, out) == (2, "")
    assert "app" not in err
    assert ("only after a yes: --allow-bin" in err) is (command == "score")
    assert ("training starts from no others" in err) is (command == "train")
