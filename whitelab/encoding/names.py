"""A model's name: what it asks for, how it is shown, and whether the operator of a server allows it.

Four kinds: `bundled` (the all-MiniLM-L6-v2 that comes with the requirements), `trained:RUN` (what a training run of
this user left behind), a local folder, and a Hugging Face name; each may be modified (`ModelName`): `bundled:3`,
`random@7:bundled`, `sif:bundled`, `output:bundled`. Nothing is opened or downloaded for a name.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from whitelab.base.user_folders import expanded, name_of

BUNDLED = "bundled"
BUNDLED_NAME = "all-MiniLM-L6-v2"
TRAINED = "trained:"

# What may stand before a name and a colon.
KINDS = {
    "random": "the same architecture and tokenizer with random weights",
    "static": "the mean of the sentence's rows of the word-embedding matrix",
    "sif": "the same mean with rare words weighted up (SIF)",
    "output": "the model's own output: what its sentence-transformers modules make of the last layer",
}
WORD_TABLES = ("static", "sif")  # of them, those without a network
OUTPUT = "output"  # a network whose one layer is what its modules give
ONE_LAYER = {  # what it is, of which no block can be left out and none trained
    **dict.fromkeys(WORD_TABLES, "a table of word embeddings"),
    OUTPUT: "what its modules make of the last layer",
}


class ModelError(ValueError):
    """A model that cannot be had or used; the message says why and what to do."""


@dataclass(frozen=True)
class ModelName:
    """A model's name taken apart: `base` is looked for, the rest says what is made of it.

    `NAME:3` is the first 3 blocks of NAME. `random:NAME` and `random@7:NAME` are its architecture, config and
    tokenizer with random weights (seed 0, seed 7), `static:NAME` and `sif:NAME` are means of word embeddings,
    `output:NAME` is what the sentence-transformers modules of NAME make of its last layer (dense projections, length
    1). A folder is taken for what it is, colons and all.
    """

    base: str
    kind: str = ""
    seed: int = 0
    blocks: int | None = None

    @classmethod
    def parse(cls, text: str) -> "ModelName":
        """Read a name. Raises ModelError for an empty one and for modifiers that do not go together."""
        if not isinstance(text, str) or not text.strip():
            raise ModelError(f"model={text!r} must be 'bundled', a local folder or a Hugging Face name")
        rest, kind, seed = text.strip(), "", 0
        found = re.match(rf"({'|'.join(KINDS)})(?:@(\d{{1,18}}))?:(?=.)", rest)
        if found and folder_of(rest) is None:
            rest, kind, seed = rest[found.end() :].strip(), found[1], int(found[2] or 0)
            if found[2] and kind != "random":
                raise ModelError(f"model={text!r} must name a seed for random only: {kind} draws nothing")
        found = re.fullmatch(r"(.+):(\d{1,9})", rest)
        if not found or folder_of(rest) is not None or f"{found[1]}:" == TRAINED:
            return cls(rest, kind, seed)
        if kind in ONE_LAYER:
            raise ModelError(f"model={text!r} must not name blocks: {kind} has one layer, {ONE_LAYER[kind]}")
        return cls(found[1], kind, seed, int(found[2]))

    @property
    def shown(self) -> str:
        """The name on screen, that of its encoder: `random@7:all-MiniLM-L6-v2[:3]`."""
        base = BUNDLED_NAME if self.base == BUNDLED else self.base
        return self.of(base) + ("" if self.blocks is None else f"[:{self.blocks}]")

    @property
    def typed(self) -> str:
        """The name as it is typed: `random@7:bundled:3`."""
        return self.of(self.base) + ("" if self.blocks is None else f":{self.blocks}")

    @property
    def anywhere(self) -> str:
        """The name under which it is found from any working directory."""
        folder = folder_of(self.base)
        return self.typed if folder is None else replace(self, base=str(folder.absolute())).typed

    def of(self, base: str) -> str:
        """`base` with this name's kind before it."""
        seed = f"@{self.seed}" if self.kind == "random" else ""
        return f"{self.kind}{seed}:{base}" if self.kind else base


def without_path(model: str) -> ModelName:
    """A name as it may leave the machine: of a folder, there or not, its own. Raises ModelError as `parse` does."""
    name = ModelName.parse(model)
    if (path := folder_of(name.base)) is not None:
        return replace(name, base=path.resolve().name or name.base)  # the root of a disk has none
    return replace(name, base=name_of(name.base)) if is_path(name.base) else name


def shown_name(model: str) -> str:
    """The name `find_model` gives a model, without looking for it; of a folder that is gone its own, with no path."""
    return without_path(model).shown


def check_alone(name: str) -> None:
    """Raise ModelError for a `sif:` model, whose vector of a text is another where that text comes alone."""
    parsed = ModelName.parse(name)
    if parsed.kind == "sif":
        raise ModelError(
            f"model={name!r} weighs words by all texts together, so a text without the others has another vector: "
            f"use static:{parsed.base}"
        )


def folder_of(name: str) -> Path | None:
    """The folder a name stands for, `~` expanded; None where it stands for something else."""
    try:
        path = expanded(name)
        return path if name != BUNDLED and path.is_dir() else None
    except (OSError, ValueError):  # too long, no home folder, a null character
        return None


def is_path(name: str) -> bool:
    """Whether a name that is no folder can only have been meant as one."""
    try:
        path = expanded(name)
        return path.is_absolute() or name.startswith((".", "~")) or path.exists()
    except (OSError, ValueError):
        return name.startswith("~")


def allowed(model: str) -> bool:
    """Whether the operator lets `model` be loaded: `WHITELAB_MODELS`, names or patterns separated by commas.

    Unset or empty allows everything. A pattern is compared with the name without its modifiers, or with the path of
    a folder after `..` and links. What was trained here began with a model that was allowed.
    """
    patterns = [one.strip() for one in os.environ.get("WHITELAB_MODELS", "").split(",") if one.strip()]
    base = ModelName.parse(model).base
    if (path := folder_of(base)) is not None:
        base = str(path.resolve())
        for one in [one for one in patterns if one != BUNDLED]:
            with suppress(ValueError):  # a pattern in the home folder of nobody allows nothing
                patterns.append(str(expanded(one).resolve()))
    return not patterns or base.startswith(TRAINED) or any(fnmatchcase(base, one) for one in patterns)


def check_allowed(model: str) -> str:
    """Return `model` if the operator allows it; ModelError otherwise."""
    if not allowed(model):
        names = [one for one in map(str.strip, os.environ["WHITELAB_MODELS"].split(",")) if one and not is_path(one)]
        raise ModelError(
            f"model={model!r} is not among those the operator of this machine allows (WHITELAB_MODELS)"
            + (f": {', '.join(names)}" if names else "")
        )
    return model
