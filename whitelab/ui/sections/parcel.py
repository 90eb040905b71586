"""One map to take away, of a task or of a search: its record, its file name, and the lines that use it."""

from dataclasses import dataclass
from pathlib import Path

from whitelab.base.wording import for_a_file, layers_in_words
from whitelab.corpus.fitting import CORPUS
from whitelab.encoding.embeddings import LayerEmbeddings, MeasuredRows
from whitelab.encoding.encoders import Encoder
from whitelab.retrieval.calibration import calibrate_search
from whitelab.retrieval.embedded import FITS, RetrievalSpace, for_documents
from whitelab.scoring.calibration import calibrate, random_cosines, random_pairs, tells_apart
from whitelab.scoring.fit_scopes import Fitted, fit_scope
from whitelab.scoring.setting import FIT_SCOPES, TOKENS, Setting, scope_in_words, scope_name
from whitelab.statistics.random_cosines import RandomCosines
from whitelab.ui.frame.recipe import fitting, loading, opening, pooling
from whitelab.ui.results.shelf import shelf
from whitelab.ui.results.study import study
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.whitening import Map, export, of_rows

SCIKIT = "scikit-learn"  # no file, but the lines that make the same map
_LONGEST = 40  # characters that a name of data takes of a file's


@dataclass(frozen=True)
class Parcel:
    """The map of a setting on a task's embeddings, whose protocol has only one map (not `cross`)."""

    workspace: Workspace | None  # none of vectors without pairs, which stand in no bar
    space: LayerEmbeddings
    setting: Setting
    scopes = FIT_SCOPES

    @property
    def fitted(self) -> Fitted:
        """The map and what it was fitted on."""
        return fit_scope(self.space, self.setting)

    def whitener(self) -> Map:
        """The map."""
        (whitener,) = self.fitted.whiteners
        return whitener

    @property
    def fitted_on(self) -> str:
        """What it was fitted on, in words."""
        return scope_in_words(self.setting.fit, self.scopes, self.space.texts)

    @property
    def name(self) -> str:
        """What tells it from every other map."""
        return f"{shelf().name(self.space)}/{self.setting}"

    @property
    def stem(self) -> str:
        """A file name that says what is inside: `all-MiniLM-L6-v2-mean-layers-1-pca-k64-demo`."""
        setting, origin = self.setting, self.space.origin
        k = f"-k{setting.k}" if setting.k else ""
        layers = "-".join(map(str, setting.layers))
        made = for_a_file(f"{Path(origin.model).name}-{setting.pooling}-layers-{layers}-{setting.whitening}{k}")
        task = for_a_file(origin.task, _LONGEST) + (
            "" if origin.split == "all" else f"-{for_a_file(origin.split, _LONGEST)}"
        )
        name, text = scope_name(setting.fit).removeprefix(CORPUS), self.space.texts.get(setting.fit)
        on = for_a_file(Path(name).stem, _LONGEST)
        if isinstance(text, MeasuredRows):  # folders of embedded text are often called alike
            on = f"{for_a_file(name, _LONGEST)}-{text.mark}"
        return f"{made}-{task}" + ("" if setting.fit == "task" else f"-on-{on}")

    def stem_of(self, kind: str) -> str:
        """`stem`, and of a graph that it is one: a model folder leaves under the same ending."""
        return self.stem + ("-onnx" if kind == "onnx" else "")

    @property
    def record(self) -> dict:
        """How the map was made, with no path of this machine in it."""
        return self.fitted.record

    @property
    def calibrates(self) -> bool:
        """Whether its cosines mean something."""
        return tells_apart(self.space, self.fitted)

    @property
    def given(self) -> bool:
        """Whether vectors that were brought stand for a model."""
        return self.workspace.given

    @property
    def stands_for_gold(self) -> bool:
        """Whether a cosine stands for a gold score."""
        return bool((self.space.gold != self.space.gold[0]).any())

    @property
    def among(self) -> str:
        """The pairs among whose cosines one has its percentile."""
        return random_pairs(self.space.origin)

    def scale(self) -> export.Scale | None:
        """What its cosines mean, as an export carries it; None where they mean nothing."""
        return study(calibrate, self.space, self.setting).arrays() if self.calibrates else None

    def encoder(self) -> Encoder:
        """The encoder that makes what the map takes."""
        return self.workspace.encoder()

    @property
    def encoder_code(self) -> str:
        """The expression that loads it."""
        return loading(self.workspace)

    @property
    def prompts(self) -> dict[str, str]:
        """What stood before the texts of the map, as `RetrievalSet.prompts`."""
        return {}

    @property
    def examples(self) -> str:
        """Texts that are shown being encoded, in code."""
        return '["A man plays a guitar.", "Someone makes music."]'

    @property
    def has_rows(self) -> bool:
        """Whether what it was fitted on is at hand, or its moments alone."""
        return all(fold.has_rows for fold in self.fitted.folds)

    @property
    def rows_code(self) -> str:
        """The lines that make what it was fitted on as `rows`."""
        fit = self.setting.fit
        rows = {"task": "space", TOKENS: "space.words"}.get(fit, f"space.texts[{fit!r}]")
        return f"{opening(self.workspace)}{fitting(self.workspace)}rows = {rows}\n"


@dataclass(frozen=True)
class SearchParcel(Parcel):
    """The map of a setting on a retrieval set; `code` are the lines that make it as `searched`."""

    searched: RetrievalSpace
    code: str
    scopes = FITS

    @property
    def name(self) -> str:
        return f"{shelf().name(self.searched)}/{self.setting}"

    @property
    def record(self) -> dict:
        return super().record | self.prompts

    @property
    def stands_for_gold(self) -> bool:
        return False  # documents nobody judged have no grade

    @property
    def among(self) -> str:
        return str(export.SEARCHED["among"])

    def scale(self) -> export.Scale | None:
        if not self.calibrates:
            return None
        return study(calibrate_search, self.searched, self.setting).arrays() | export.SEARCHED

    def encoder(self) -> Encoder:
        return for_documents(super().encoder())

    @property
    def encoder_code(self) -> str:
        return f"whitelab.for_documents({super().encoder_code})"

    @property
    def prompts(self) -> dict[str, str]:
        return self.searched.data.prompts

    @property
    def examples(self) -> str:
        if not self.prompts:
            return super().examples
        query, document = self.prompts.values()
        return str([f"{query}Who plays the guitar?", f"{document}A man plays a guitar."])

    @property
    def rows_code(self) -> str:
        return f"{opening(self.workspace)}{self.code}rows = searched.space.texts[{self.setting.fit!r}]\n"


@dataclass(frozen=True)
class VectorsParcel(Parcel):
    """The map of a setting on vectors without pairs, in no workspace; `code` are the lines that read their `space`."""

    code: str

    @property
    def given(self) -> bool:
        return True

    @property
    def fitted_on(self) -> str:
        return "all vectors"

    @property
    def stem(self) -> str:
        setting = self.setting
        layer = f"-layer-{setting.layers[0]}" * (self.space.n_layers > 1)
        return for_a_file(f"{self.space.origin.task}{layer}-{setting.whitening}{f'-k{setting.k}' if setting.k else ''}")

    @property
    def stands_for_gold(self) -> bool:
        return False

    def scale(self) -> export.Scale | None:
        return study(_random_cosines, self.space, self.setting).arrays(self.among) if self.calibrates else None

    @property
    def rows_code(self) -> str:
        return f"{self.code}rows = space.texts[{self.setting.fit!r}]\n"


def _random_cosines(space: LayerEmbeddings, setting: Setting) -> RandomCosines:
    return random_cosines(space, fit_scope(space, setting))


def lines(kind: str, parcel: Parcel) -> str:
    """How to use the download, from sentences on, or how to have the same in scikit-learn."""
    stem = parcel.stem_of(kind)
    if kind == "npz":
        return f"{export.numpy_lines(f'{stem}.npz')}\n\n{_making_x(parcel)}z = whiten(x)\n{_meaning(parcel)}"
    if kind == "faiss":
        return (
            "import faiss\nimport numpy as np\n\n"
            f"{_making_x(parcel)}"
            f'transform = faiss.read_VectorTransform("{stem}.faiss")\n'
            "z = transform.apply(np.ascontiguousarray(x, dtype=np.float32))  # of another width: an AssertionError\n\n"
            "# cosine search: whitened vectors of length 1, compared by their inner product\n"
            "faiss.normalize_L2(z)\n"
            "index = faiss.IndexFlatIP(transform.d_out)\n"
            "index.add(z)\n"
        )
    if kind == "safetensors":
        return (
            "from whitelab.whitening.export import from_safetensors\n\n"
            f"{_making_x(parcel).replace('.numpy()', '')}"
            f'fitted, protocol = from_safetensors("{stem}.safetensors")\n'
            "z = fitted(x)  # a tensor [n, d] to one in float64\n"
        )
    if kind == "sentence-transformers":
        return (
            "# unzip first; needs no whitelab\n"
            "from sentence_transformers import SentenceTransformer\n\n"
            f'model = SentenceTransformer("{stem}")\n'
            f"{export.encoding_lines(parcel.record)}\n"
        )
    if kind == "onnx":
        usage = export.onnx_lines(stem, parcel.encoder(), parcel.whitener().columns)
        return f"# unzip first; needs no whitelab\n{usage}\n\nvectors = encode({parcel.examples})\n"
    return _scikit_lines(parcel)


def _scikit_lines(parcel: Parcel) -> str:
    setting = parcel.setting
    made = f"WhiteningTransformer({setting.whitening!r}{f', k={setting.k}' if setting.k else ''})"
    whole = (
        "import numpy as np\n"
        "import whitelab\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import Normalizer\n"
        "from whitelab import WhiteningTransformer\n\n"
        f"{parcel.rows_code}"
        f"x = rows.combine({setting.layers!r})  # [n, {parcel.space.dim}], or your own\n"
        "x = x.repeat_interleave(rows.counts.long(), dim=0).numpy()\n"
        f"pipeline = make_pipeline({made}, Normalizer()).fit(x)\n"
        "z = pipeline.transform(x)\n"
    )
    if of_rows(setting.whitening):
        return whole
    return (
        f"{whole}\n# or in batches, with the same result\nwhitening = {made}\n"
        "for batch in np.array_split(x, 4):\n    whitening.partial_fit(batch)\n"
    )


def _meaning(parcel: Parcel) -> str:
    """The lines that say what a cosine of the map's vectors means."""
    if not parcel.calibrates:
        return ""
    meaning = export.scale_lines(f"{parcel.stem}.npz", parcel.stands_for_gold, among=parcel.among)
    return f"\n# what a cosine of them means\n{meaning}"


def _making_x(parcel: Parcel) -> str:
    """The lines that make what the map takes: vectors of another layer or pooling it would take without a word."""
    layers, chosen = list(parcel.setting.layers), parcel.workspace
    what = ("the mean of " if len(layers) > 1 else "") + layers_in_words(layers)
    if parcel.given:
        return f"x = ...  # [n, {parcel.space.dim}], {what} of vectors made as those given: no others fit the map\n"
    return (
        "import whitelab\n\n"
        f"encoder = {parcel.encoder_code}\n"
        f"sentences = {parcel.examples}\n"
        f"values, report = whitelab.embed(encoder, sentences{pooling(chosen)})\n"
        f"x = values[{layers}].mean(0).numpy()  # [n, {parcel.space.dim}], {what}: no other vectors fit the map\n"
    )
