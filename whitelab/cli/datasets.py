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
    """Records and lines of the tasks that `data` holds. Raises DataError where none of them is sentence pairs."""
    from whitelab.datasets import DataError, discover

    tasks = [_record(data, task) for task in discover(data)]
    if all("reason" in task for task in tasks):
        raise DataError(tasks[0]["reason"])
    return tasks, [_line(task) for task in tasks]


def _record(data: str, task) -> dict:
    record = {
        "name": task.name,
        "title": task.title,
        "splits": list(task.splits),
        "subsets": list(task.subset_names),
        "published": task.published,
    }
    reason = _unread(data, task)
    return record | ({"reason": reason} if reason else {})


def _unread(data: str, task) -> str:
    """Why a table holds no sentence pairs, which only reading it tells; empty where it holds some."""
    from whitelab.datasets import DataError, load

    if task.layout != "table":
        return ""
    try:
        load(data, task.name, task.split_like(), keep_going=True)
    except DataError as error:
        return str(error)
    return ""


def _line(task: dict) -> str:
    if "reason" in task:
        return f"{task['name']:12} not read as sentence pairs: {task['reason']}"
    line = f"{task['name']:12} splits {', '.join(task['splits'])}"
    return line + (f"; subsets {', '.join(task['subsets'])}" if task["subsets"] else "")
