"""`datasets`: the tasks of a folder or file."""

import argparse

from whitelab.cli.options import json_option, source_option


def add_options(parser: argparse.ArgumentParser) -> None:
    source_option(parser)
    json_option(parser)


def run(args):
    tasks, lines = tasks_of(args.data)
    return {"data": args.data, "tasks": tasks}, lines


def tasks_of(data: str) -> tuple[list[dict], list[str]]:
    """Records and lines of the tasks that `data` holds."""
    from whitelab.datasets import discover

    tasks = [
        {
            "name": task.name,
            "title": task.title,
            "splits": list(task.splits),
            "subsets": list(task.subset_names),
            "published": task.published,
        }
        for task in discover(data)
    ]
    return tasks, [f"{t['name']:12} splits {', '.join(t['splits'])}; subsets {', '.join(t['subsets'])}" for t in tasks]
