"""Models from the Hugging Face hub: downloaded once and only what is needed, and every refusal one line of advice."""

import hashlib
import json

import pytest
import torch
from fake_hub import COMMIT, Local, Speaking, asking
from processes import free_port, run_python
from safetensors.torch import load_file
from tiny import DIM

from whitelab.encoding.checkpoints import on_disk
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder
from whitelab.encoding.names import ModelError


class Hub(Local):
    """The few answers of the hub that a download needs."""

    def __init__(self):
        self.files, self.refusals, self.asked = {}, {}, []
        super().__init__(Answers)

    def offer(self, name, folder):
        self.files[name] = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def refuse(self, name, status, code=None, message=None, only_files=False):
        self.refusals[name] = (status, code, message, only_files)


class Answers(Speaking):
    def answer(self):
        path = self.path.split("?")[0].strip("/")
        self.server.asked.append((self.command, path))
        api = path.startswith("api/models/")
        name = "/".join((path[len("api/models/") :] if api else path).split("/")[:2])
        rest = path.split(name, 1)[1].strip("/")
        refusal = self.server.refusals.get(name)
        if refusal and not (refusal[3] and api):
            status, code, message, _ = refusal
            return self.send(status, {"X-Error-Code": code, "X-Error-Message": message})
        files = self.server.files.get(name)
        if files is None:
            return self.send(404, {"X-Error-Code": "RepoNotFound"})
        if api and rest.startswith("revision/"):
            siblings = [{"rfilename": file} for file in files]
            return self.send_json({"id": name, "sha": COMMIT, "siblings": siblings})
        if api and rest.startswith("tree/"):
            oids = {file: hashlib.sha1(data).hexdigest() for file, data in files.items()}
            return self.send_json([{"type": "file", "path": f, "oid": oids[f], "size": len(files[f])} for f in files])
        data = files.get(rest.rsplit("/", 1)[-1]) if rest.startswith("resolve/") else None
        if data is None:
            return self.send(404, {"X-Error-Code": "EntryNotFound"})
        etag = f'"{hashlib.sha1(data).hexdigest()}"'
        return self.send(200, {"ETag": etag, "X-Repo-Commit": COMMIT}, data)

    def send_json(self, value):
        self.send(200, {"Content-Type": "application/json"}, json.dumps(value).encode())


@pytest.fixture
def hub():
    with Hub() as server:
        yield server


FIND = """
import sys
from whitelab.encoding.checkpoints import find_model
from whitelab.encoding.hub import cached_models
from whitelab.encoding.names import ModelError
for name in sys.argv[1:]:
    try:
        files = find_model(name)
        print("found", files.name, files.layers, files.dim, files.weights, *cached_models())
    except ModelError as error:
        print("ModelError", error)
"""


@pytest.fixture
def asked(hub, monkeypatch, tmp_path):
    """The hub, which this process asks, and a cache of its own."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with asking(monkeypatch, hub.url):
        yield hub


@pytest.fixture
def ask(tmp_path):
    """Ask for names in a fresh process (the hub's address is read when its client is imported): a line for each."""

    def ask(endpoint, *names, code=FIND, **more):
        environment = {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_CACHE": str(tmp_path / "hf" / "hub"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        } | more
        run = run_python(code, *names, **environment)
        assert "Traceback" not in run.stderr, run.stderr
        return run.stdout.strip()

    return ask


def test_a_name_is_downloaded_once_and_then_comes_from_the_cache(hub, ask, whole):
    hub.offer("someone/tiny-bert", whole)
    weights = hashlib.sha256((whole / "model.safetensors").read_bytes()).hexdigest()
    found = f"found someone/tiny-bert 3 {DIM} {weights} someone/tiny-bert"
    assert ask(hub.url, "someone/tiny-bert") == found
    fetched = [path for method, path in hub.asked if method == "GET" and "resolve" in path]
    assert len(fetched) == len(set(fetched)) == len(list(whole.iterdir()))
    hub.asked.clear()
    assert ask(hub.url, "someone/tiny-bert") == found
    assert [path for method, path in hub.asked if method == "GET" and "resolve" in path] == []
    assert ask(f"http://127.0.0.1:{free_port()}", "someone/tiny-bert") == found
    assert ask(hub.url, "someone/tiny-bert", HF_HUB_OFFLINE="1") == found


def test_only_what_is_needed_is_downloaded_and_pickled_weights_never(hub, ask, folder):
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    (folder / "own.py").write_text("raise SystemExit")
    (folder / "model.onnx").write_bytes(b"onnx")
    (folder / "spm.model").write_bytes(b"pieces")
    hub.offer("someone/everything", folder)
    assert ask(hub.url, "someone/everything").startswith("found")
    fetched = {path.rsplit("/", 1)[-1] for method, path in hub.asked if "resolve" in path}
    assert fetched == {
        "config.json",
        "model.safetensors",
        "spm.model",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    }


def test_a_name_with_pickled_weights_only_is_refused(hub, ask, folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    hub.offer("someone/pickled", folder)
    answer = ask(hub.url, "someone/pickled")
    assert answer.startswith("ModelError model='someone/pickled' has no *.safetensors weights")
    assert not any(path.endswith(".bin") for _, path in hub.asked)


def test_a_downloaded_model_that_an_adapter_is_to_change_is_refused_as_a_local_folder_is(asked, folder):
    (folder / "adapter_config.json").write_text("{}")
    asked.offer("someone/adapted", folder)
    for name in (str(folder), "someone/adapted"):
        with pytest.raises(ModelError, match="has an adapter, which is not applied here"):
            load_encoder(name, device="cpu")


def test_a_downloaded_model_encodes_as_the_local_folder_does_pickled_weights_after_a_yes(asked, whole, folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    (folder / "optimizer.bin").write_bytes(b"not for us")
    asked.offer("someone/tiny-bert", whole)
    asked.offer("someone/pickled", folder)  # the same weights
    encoders = (
        load_encoder(name, device="cpu", allow_bin=True)
        for name in (str(whole), "someone/tiny-bert", "someone/pickled")
    )
    local, *downloaded = (embed(encoder, ["a man plays a guitar"])[0] for encoder in encoders)
    assert len(downloaded) == 2
    assert all(torch.equal(one, local) for one in downloaded)
    assert not any(path.endswith("optimizer.bin") for _, path in asked.asked)


def test_a_random_control_downloads_no_weights(hub, ask, whole):
    hub.offer("someone/tiny-bert", whole)
    assert ask(hub.url, "random@3:someone/tiny-bert").startswith("found random@3:someone/tiny-bert 3")
    assert not any(path.endswith(".safetensors") for _, path in hub.asked)
    code = FIND.replace(
        'print("found"',
        "from whitelab.encoding.checkpoints import on_disk\n        print(on_disk(name), on_disk('someone/tiny-bert')",
    )
    assert ask(hub.url, "random@3:someone/tiny-bert", code=code).startswith("True False random@3:someone/tiny-bert 3")


def test_a_downloaded_model_is_known_to_have_modules_which_are_not_fetched_unless_asked_for(asked, folder):
    listed = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense")]
    (folder / "modules.json").write_text(json.dumps([{"type": f"x.{kind}", "path": path} for kind, path in listed]))
    asked.offer("someone/projected", folder)
    _, report = embed(load_encoder("someone/projected", device="cpu"), ["a man plays a guitar"])
    (left_out,) = report.notes
    assert left_out.startswith("someone/projected has modules after its layers (Dense), left out here")
    assert (on_disk("someone/projected"), on_disk("output:someone/projected")) == (True, False)


REFUSALS = {
    "misspelt": ((404, "RepoNotFound"), "check the spelling"),
    # The hub's client reads this one as "not found" from https addresses only, so here it stays unexplained.
    "unknown to a stranger": ((401, None, "Invalid username or password."), "name a local folder"),
    "private": ((401, "RepoNotFound"), "set HF_TOKEN if it is private"),
    "gated": ((401, "GatedRepo"), "accept its terms on its Hugging Face page"),
    "gated, not yet granted": ((403, "GatedRepo"), "accept its terms on its Hugging Face page"),
    "gated files": ((401, "GatedRepo", None, True), "accept its terms on its Hugging Face page"),
    "gated files, not yet granted": (
        (403, "GatedRepo", None, True),
        "accept its terms on its Hugging Face page",
    ),
    "forbidden": ((403, None), "model='some/name"),
    "disabled": ((403, None, "Access to this resource is disabled."), "model='some/name"),
    "no such revision": ((404, "RevisionNotFound"), "could not be downloaded"),
    "broken hub": ((500, None), "answered 500, a fault of its own: try again in a few minutes; or name a local folder"),
    "busy hub": ((429, None), "answered 429, too many requests: try again in a few minutes; or name a local folder"),
    "wrong token": (
        (401, None, "Invalid credentials in Authorization header"),
        "model='some/name",
    ),
}


def test_what_the_hub_refuses_is_one_line_that_says_what_to_do(hub, ask, whole, subtests):
    names = {kind: f"some/name-{i}" for i, kind in enumerate(REFUSALS)}
    for kind, (answer, _) in REFUSALS.items():
        hub.offer(names[kind], whole)
        hub.refuse(names[kind], *answer)
    lines = ask(hub.url, *names.values()).splitlines()
    assert len(lines) == len(REFUSALS)
    for (kind, (_, advice)), line in zip(REFUSALS.items(), lines, strict=True):
        with subtests.test(kind):
            assert line.startswith(f"ModelError model='{names[kind]}'")
            assert advice in line


def test_a_hub_that_does_not_answer_is_one_line_that_says_what_to_do(ask):
    said = ask(f"http://127.0.0.1:{free_port()}", "some/name")
    assert said.startswith("ModelError model='some/name' is not on this machine")
    assert "use model='bundled'" in said
    assert "\n" not in said


def test_an_address_that_is_none_of_a_hub_is_named(ask):
    said = ask("ftp://127.0.0.1", "some/name")
    assert (
        said
        == "ModelError model='some/name' could not be downloaded: HF_ENDPOINT=ftp://127.0.0.1 is no address of a hub"
    )


def test_offline_mode_is_one_line_that_says_what_to_do(hub, ask, whole):
    hub.offer("some/name", whole)
    said = ask(hub.url, "some/name", HF_HUB_OFFLINE="1")
    assert said.startswith("ModelError model='some/name' is not on this machine, and HF_HUB_OFFLINE is set")
    assert hub.asked == []


def test_a_name_no_hub_could_have_is_one_line_and_asks_nobody(hub, ask):
    names = ["a/b/c", "some name", "x" * 200, "-dash-", "what?", "name..twice", "ü/ö"]
    for name, line in zip(names, ask(hub.url, *names).splitlines(), strict=True):
        assert line.startswith(f"ModelError model={name!r} must be 'bundled', a local folder or a Hugging Face name")
    assert hub.asked == []


def test_a_broken_download_is_refused_now_and_completed_later(hub, ask, whole):
    hub.offer("someone/tiny-bert", whole)
    weights = hub.files["someone/tiny-bert"].pop("model.safetensors")
    assert "no *.safetensors weights" in ask(hub.url, "someone/tiny-bert")
    hub.files["someone/other"] = dict(hub.files["someone/tiny-bert"], **{"model.safetensors": weights})
    hub.refuse("someone/other", 403, only_files=True)
    assert ask(hub.url, "someone/other").startswith("ModelError model='someone/other'")
    hub.refusals.clear()
    assert ask(hub.url, "someone/other").startswith("found someone/other 3")


def test_cached_models_is_empty_where_there_is_no_cache(ask, hub):
    code = "from whitelab.encoding.hub import cached_models; print(cached_models())"
    assert ask(hub.url, code=code) == "()"
