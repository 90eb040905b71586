"""`download`: a published benchmark, after its licence was shown."""

import argparse

from whitelab.cli.datasets import tasks_of
from whitelab.cli.options import json_option
from whitelab.cli.writing import progress


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="a source of --list, such as senteval")
    parser.add_argument("--list", action="store_true", help="list the sources with their sizes and licences")
    parser.add_argument("--to", help="folder to fetch it into (default: the user's cache, where --data NAME finds it)")
    parser.add_argument(
        "--accept-licence", action="store_true", help="you have read the source's terms and accept them"
    )
    json_option(parser)


def run(args):
    from whitelab.datasets import fetch

    if args.list == bool(args.name):
        raise ValueError("give either the name of a source or --list, which shows them")
    if args.list:
        return _sources()
    folder = str(fetch(args.name, args.to, accept_licence=args.accept_licence, progress=progress("fetching", "bytes")))
    tasks, lines = tasks_of(folder)
    return {"source": args.name, "folder": folder, "tasks": tasks}, [folder, *lines]


def _sources():
    from whitelab.base.wording import amount
    from whitelab.datasets import SOURCES, fetched

    sources = [
        {
            "name": one.name,
            "title": one.title,
            "tasks": {task: list(splits) for task, splits in one.tasks.items()},
            "size": one.size,
            "licence": one.licence,
            "terms": one.terms,
            "home": one.home,
            "folder": str(folder) if (folder := fetched(one.name)) else None,
        }
        for one in SOURCES.values()
    ]
    lines = [f"{s['name']:12} {amount(s['size']):>8}  {s['title']}; licence: {s['licence']}" for s in sources]
    return {"sources": sources}, lines
