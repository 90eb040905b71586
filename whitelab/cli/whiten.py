"""`whiten`: a map for another tool."""

import argparse

from whitelab.cli.options import (
    SEARCHED_FIT,
    layers_option,
    search_options,
    space_options,
    whitening_options,
)
from whitelab.cli.spaces import fit_ahead, open_search, open_space, read_given, say_if_starved, setting_of_either
from whitelab.cli.writing import note


def add_options(parser: argparse.ArgumentParser) -> None:
    from whitelab.whitening.export import FORMATS

    space_options(parser, searched=True)
    layers_option(parser)
    whitening_options(parser, "pca", fit=SEARCHED_FIT)
    search_options(parser, "the map is fitted on its corpus, titles and all, as retrieve and advise measure it")
    parser.add_argument(
        "--export",
        required=True,
        choices=tuple(FORMATS),
        help="a model folder for sentence-transformers, one ONNX graph with its tokenizer, a faiss.LinearTransform, "
        "mean and matrix for NumPy, or safetensors for whitelab: the only form for clusters and flow",
    )
    parser.add_argument("--out", required=True, help="folder or file to write; an earlier export is replaced")


def run(args):
    """Fit a map and write it, alone or with its encoder, for another tool."""
    from whitelab.encoding.precomputed import Unpaired
    from whitelab.scoring.fit_scopes import fit_scope
    from whitelab.scoring.setting import EVERY, Protocol
    from whitelab.whitening.export import FORMATS

    chosen, prompts, searched = _setting(args), {}, None
    vectors = read_given(args, alone=True) if args.vectors else None
    alone = isinstance(vectors, Unpaired)
    if chosen.fit == "cross":
        kept = f"all vectors (fit={EVERY!r})" if alone else "all the task's sentences (fit='task')"
        note(f"fit='cross' fits two maps, and an export holds one: that of {kept}")
        chosen = chosen.with_(fit="task")
    setting = chosen
    if args.search:
        searched, encoder = open_search(args, setting)
        space, setting = searched.space, searched.on(setting)
        prompts = searched.data.prompts
    elif alone:
        space, encoder = vectors.space, None
        chosen = setting = setting.with_(fit=EVERY, k=setting.k)
        say_if_starved(space, setting)
    else:
        space, _, encoder, _ = open_space(args, setting, vectors=vectors)
    cost = fit_ahead(space, [setting], isotropy=False)
    fitted = fit_scope(space, setting)
    if setting.k and fitted.rank < setting.k:
        note(f"k={setting.k} is more than the {fitted.rank} directions that the sentences span: the map has these")
    protocol, (whitener,) = Protocol(fitted.setting, space.origin), fitted.whiteners
    record = fitted.record | prompts
    if prompts:
        note(FORMATS[args.export].prompts_note(prompts))
    _write(args, encoder, fitted.setting, whitener, record, _scale(args, searched, space, setting, fitted))
    result = {
        "setting": str(fitted.setting.with_(fit=chosen.fit)),
        "out": args.out,
        "export": args.export,
        "rank": fitted.rank,
        "dim": whitener.columns,
        "fitted": fitted.count,
        "protocol": record,
    } | cost
    written = f"{args.export} written to {args.out} ({result['dim']} dimensions)"
    use = f"to use it: {FORMATS[args.export].used(args.out)}"
    return result, [written, use, protocol.line(fitted.count, fitted.rank)]


def _setting(args):
    """The setting whose one map leaves. Raises ValueError for what cannot, before minutes of embedding."""
    from whitelab.base.installation import EXTRAS, need
    from whitelab.encoding.names import check_alone
    from whitelab.whitening import of_rows
    from whitelab.whitening.export import ALONE, FORMATS, check_holds, check_out

    setting, form = setting_of_either(args), FORMATS[args.export]
    check_out(args.export, args.out)
    if args.vectors and form.whole:
        raise ValueError(f"export={args.export!r} holds a model, which --vectors are without: use one of {ALONE}")
    if args.export in EXTRAS:
        need(args.export)
    check_holds(args.export, setting.pooling, args.model)
    check_alone(args.model)
    if of_rows(setting.whitening) and not form.any_map:
        raise ValueError(f"export={args.export!r} holds a matrix, which {setting.whitening!r} is not: use safetensors")
    return setting


def _scale(args, searched, space, setting, fitted):
    """What cosines mean under the map, for a form that carries it; None where that is nothing, or would be of data that
    nobody named."""
    from whitelab.retrieval.calibration import calibrate_search
    from whitelab.retrieval.embedded import FITS
    from whitelab.scoring.calibration import calibrate, random_cosines, random_pairs, tells_apart
    from whitelab.scoring.setting import FIT_SCOPES
    from whitelab.whitening.export import FORMATS, SEARCHED

    if not FORMATS[args.export].scaled or not tells_apart(space, fitted):
        return None
    if "data" not in args.given and not args.vectors and setting.fit not in (*FIT_SCOPES, *FITS, args.data):
        note(
            "no percentiles of cosines go with this map of other text: --data, among whose pairs they would be, stands "
            f"at {args.data} unasked"
        )
        return None
    if searched:
        return calibrate_search(searched, setting).arrays() | SEARCHED
    if space.n_pairs:
        return calibrate(space, setting).arrays()
    return random_cosines(space, fitted).arrays(random_pairs(space.origin))


def _write(args, encoder, setting, whitener, record, scale) -> None:
    """Write the map in the form that was asked for."""
    from whitelab.whitening import export

    if args.export == "npz":
        export.to_npz(args.out, whitener, record, scale)
    elif args.export == "safetensors":
        export.to_safetensors(args.out, whitener, record)
    elif args.export == "faiss":
        export.to_faiss(args.out, whitener, record)
    elif args.export == "onnx":
        export.to_onnx(args.out, encoder, setting.layers, setting.pooling, whitener, record, scale)
    else:
        export.to_sentence_transformers(args.out, encoder, setting.layers, setting.pooling, whitener, record, scale)
