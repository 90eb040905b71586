"""Variants of whitening on the screen: their readable names, and choosing some of them beside the workspace's own."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

import streamlit as st

from whitelab.base.wording import capitalised, inside, plain
from whitelab.scoring.fit_scopes import gives, lacking
from whitelab.scoring.setting import Setting
from whitelab.ui.sidebar.workspace import OPENED, Workspace
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.typed import typed_choice
from whitelab.whitening import WHITENERS, label, parse, variant


class Labels(dict):
    """Readable names of specs: a bare name is the variant's label, a spec shows its parameters."""

    def __missing__(self, spec: str) -> str:
        return WHITENERS[spec].label if spec in WHITENERS else label(spec)

    def inline(self, spec: str) -> str:
        """The name inside a sentence."""
        return inside(self[spec])

    def at(self, setting: Setting) -> str:
        """The variant of a setting with the k it is cut to, where it is: `Centred, k = 100`."""
        return self[setting.whitening] + (f", k = {setting.k}" if setting.k else "")

    def titles(self, settings: Iterable[Setting]) -> dict[str, str]:
        """spec -> `at`, of settings under different variants."""
        return {setting.whitening: self.at(setting) for setting in settings}

    def card(self, setting: Setting) -> str:
        """`at`, behind what a card measures: `Spearman, raw`."""
        return inside(self.at(setting))

    def unscaled(self, spec: str) -> str:
        """The name on a curve over k, where centring cut to k directions is PCA without its scaling."""
        return "PCA without scaling" if spec == "center" else self[spec]


LABELS = Labels()


def over_k(setting: Setting) -> Setting:
    """The setting whose curve over k is drawn for one: PCA whitening's where its own variant has no k."""
    return setting if variant(setting.whitening).takes_k else setting.with_(whitening="pca")


def instead(setting: Setting) -> str:
    """What to say of a curve over k that is not of the setting's own variant; empty where it is."""
    if over_k(setting) == setting:
        return ""
    return f"{capitalised(LABELS.inline(setting.whitening))} has no k: this is the curve of PCA whitening. "


def all_numbers(spec: str, dim: int) -> str:
    """What to say of memory where the map of a variant with k leaves d numbers at any k; empty where it leaves k."""
    if variant(spec).narrows:
        return ""
    return (
        f" {capitalised(LABELS.inline(spec))} leaves a vector its {dim} numbers at any k. Turned to the k directions "
        "that are kept, it has k numbers and the same cosines."
    )


def variant_picker(chosen: Workspace, key: str, default: Sequence[str], title: str = "Variants") -> list[Setting]:
    """Choose variants side by side, as the workspace's setting under each, cut to its k where they take one.

    Never none at all. A name stands for the workspace's spec of it; a typed spec such as `soft:gamma=0.25` is taken as
    it is.
    """
    names = list(dict.fromkeys(spec.partition(":")[0] for spec in default))
    typed = st.multiselect(
        title,
        list(WHITENERS),
        default=names,
        **linked(key, names, _shown),
        accept_new_options=True,
        format_func=_shown,
        placeholder="Choose variants",
        help="Type a variant with parameters to add it, such as soft:gamma=0.25 or group:groups=32.",
    )
    specs = []
    for name in typed or names:
        try:
            specs.append(_spec(chosen, name))
        except ValueError as error:
            st.error(plain(str(error)))
    specs = list(dict.fromkeys(specs)) or [chosen.spec_of(name) for name in names]
    return [under(chosen, spec) for spec in specs]


def _shown(name: str) -> str:
    return WHITENERS[name].label if name in WHITENERS else name


def _spec(chosen: Workspace, name: str) -> str:
    """What a picked or typed name stands for. Raises ValueError where it is no variant, or none of the fitted text."""
    spec = str(parse(chosen.spec_of(name) if name in WHITENERS else name, chosen.model.dim))
    opened = st.session_state.get(OPENED)  # none before the page runs, where a name is typed
    text = opened.space.texts.get(chosen.compared.fit) if opened else None
    if text is not None and not gives(text, spec):
        raise ValueError(f"The corpus {lacking(LABELS.inline(spec))}")
    return spec


def under(chosen: Workspace, spec: str) -> Setting:
    """The workspace's setting under another variant, cut to its k where that takes one."""
    return chosen.setting.raw if spec == "none" else chosen.compared.with_(whitening=spec)


def baseline_picker(chosen: Workspace) -> Setting:
    """Choose the variant the others are compared with; raw, after saying why, where what is typed is none."""

    def known(name: str) -> bool:
        with suppress(ValueError):
            return bool(_spec(chosen, name))
        return False

    name = typed_choice(
        "Compared with",
        list(WHITENERS),
        found=known,
        **linked("baseline", "none", _shown),
        format_func=_shown,
        help="The baseline of the paired test. Type a variant with parameters to take it.",
    )
    try:
        return under(chosen, _spec(chosen, name or "none"))
    except ValueError as error:
        st.error(f"{plain(str(error))}. Until it is mended, all are compared with raw.")
        return chosen.setting.raw
