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
    return tasks, [_line(task) for task in tasks]


def _line(task: dict) -> str:
    line = f"{task['name']:12} splits {', '.join(task['splits'])}"
    return line + (f"; subsets {', '.join(task['subsets'])}" if task["subsets"] else "")
