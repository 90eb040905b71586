"""What several commands make of their options: pairs, encoder, embeddings, corpus, protocol."""

from whitelab.cli.writing import left_out, note, progress


def check_early(args) -> None:
    """Refuse what needs no model to refuse, before minutes are spent on encoding."""
    from whitelab.scoring.fit_scopes import OWN
    from whitelab.whitening import check_k, variant

    if getattr(args, "vectors", None):
        _check_vectors(args)
    elif getattr(args, "gold", None):
        raise ValueError(f"--gold {args.gold} needs --vectors; the scores of sentence pairs stand beside them")
    k = getattr(args, "k", None)
    if k is not None and (k < 1 or not variant(args.whitening).takes_k):
        check_k(k, args.whitening, max(k, 1))
    if args.fit not in (*OWN, "splits"):
        _text_of_fit(args)


def _check_vectors(args) -> None:
    """Refuse options that only a model could answer to."""
    from whitelab.scoring.fit_scopes import OWN

    asked = {"data": "demo", "split": "test", "model": "bundled", "pooling": "mean", "dtype": "float32"}
    asked |= dict.fromkeys(("num_layers", "max_length", "device"))
    for name, default in asked.items():
        if getattr(args, name) != default:
            option = f"--{name.replace('_', '-')} {getattr(args, name)}"
            raise ValueError(f"{option} does not go with --vectors, which stand for the data and the model")
    if args.fit not in OWN:
        raise ValueError(f"fit={args.fit!r} needs a model to embed that text; with --vectors use {' or '.join(OWN)}")


def open_task(args):
    """The task's pairs, embeddings, encoder and report the options ask for; given vectors are their own encoder."""
    if getattr(args, "vectors", None):
        given = read_given(args)
        return given.pairs, given.space, given, None
    pairs = read_pairs(args, args.task)
    encoder = load_model(args)
    return pairs, *embed_task(args, encoder, pairs)


def read_given(args):
    """The task that `--vectors` and `--gold` hold."""
    from whitelab.encoding.precomputed import read_vectors

    given = read_vectors(args.vectors, args.gold, args.task)
    for text in given.pairs.notes:
        note(text)
    return given


def read_pairs(args, task: str | None):
    from whitelab.datasets import load

    pairs = load(args.data, task, args.split, keep_going=args.skip_malformed)
    left_out(pairs.problems)
    return pairs


def load_model(args):
    from whitelab.encoding.encoders import load_encoder

    return load_encoder(
        args.model,
        num_layers=args.num_layers,
        device=args.device,
        dtype=args.dtype,
        max_length=args.max_length,
        allow_bin=args.allow_bin,
    )


def embed_task(args, encoder, pairs):
    """The embeddings, the encoder and the report; what a user should know of them goes to stderr."""
    from whitelab.encoding.embeddings import embed_pairs

    space, report = embed_pairs(encoder, pairs, args.pooling, store=open_store(args), progress=progress())
    for text in (*pairs.notes, *report.notes):
        note(text)
    if report.truncated:
        note(f"{report.truncated} sentences were cut to {encoder.max_length} tokens")
    return space, encoder, report


def open_store(args):
    from whitelab.store.embedding_store import Store

    return None if args.no_store else Store(args.cache)


def embed_corpus(args, encoder):
    """The embedded text of `--fit`, None where the task's own sentences are enough."""
    from whitelab.encoding.embeddings import embed_scope
    from whitelab.scoring.fit_scopes import OWN

    if args.fit in OWN:
        return None
    return embed_scope(encoder, _text_of_fit(args), args.pooling, store=open_store(args), progress=progress())


def _text_of_fit(args):
    """The sentences of `--fit` and how often each counts."""
    from whitelab.scoring.fit_scopes import scope_text

    return scope_text(args.fit, args.data, args.task, args.skip_malformed)


def protocol_of(args, pairs, encoder, layers=None):
    """The Protocol of the options; `layers` None stands for the last."""
    from whitelab.scoring.score import Protocol

    return Protocol(
        model=encoder.name,
        data=pairs.source,
        task=pairs.task,
        split=pairs.split,
        pooling=getattr(encoder, "pooling", args.pooling),
        layers=layers or (encoder.n_layers - 1,),
        whitening=args.whitening,
        k=getattr(args, "k", None),
        fit=args.fit,
        aggregate=getattr(args, "aggregate", "all"),
        dtype=encoder.dtype,
        max_length=encoder.max_length,
    )


def protocol_over(args, pairs, encoder, layers: str) -> dict:
    """The record of the Protocol, `layers` saying in words which of them were gone through."""
    return protocol_of(args, pairs, encoder).as_dict() | {"layers": layers}
