"""`models`: what can be loaded here, and what would be downloaded."""

import argparse

from whitelab.cli.options import json_option


def add_options(parser: argparse.ArgumentParser) -> None:
    json_option(parser)


def run(args):
    from whitelab.compare.published import alias
    from whitelab.encoding.catalogue import entries
    from whitelab.encoding.checkpoints import find_model, trained_models
    from whitelab.encoding.hub import cached_models
    from whitelab.encoding.names import BUNDLED, ModelError, allowed

    try:
        files = find_model(BUNDLED)
        bundled = {
            "name": BUNDLED,
            "model": files.name,
            "blocks": files.layers,
            "dim": files.dim,
            "ready": True,
        }
    except ModelError as error:
        bundled = {"name": BUNDLED, "ready": False, "reason": str(error)}
    listed = {one.name: one.as_dict() | {"published_as": alias(one.name)} for one in entries()}
    cached = [{"name": name, "ready": True} | listed.pop(name, {}) for name in cached_models()]
    others = [one | {"ready": False} for one in listed.values()]
    trained = [{"name": name, "ready": True} for name in trained_models()]
    models = [bundled, *trained, *(one for one in (*cached, *others) if allowed(one["name"]))]
    lines = [f"{'ready' if one['ready'] else 'to download':12} {_model_line(one)}".rstrip() for one in models]
    return {"models": models}, lines


def _model_line(one: dict) -> str:
    if "parameters" not in one:
        return one["name"]
    details = f"{one['blocks']} layers, d {one['dim']}, {one['parameters']:g} M"
    return f"{one['name']:48} {one['title']:32} {details}{', pickled' if one['weights'] == 'bin' else ''}"
