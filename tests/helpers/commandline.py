"""The command line in this process; `processes` has it in one of its own."""

from whitelab.cli import main

ANALYSES = ("embed", "score", "layers", "kcurve", "fitsize", "geometry", "similarity", "bits", "calibrate")


def called(capsys, *argv) -> tuple[int, str, str]:
    """Run a command in this process: (exit status, stdout, stderr)."""
    try:
        status = main([str(word) for word in argv])
    except SystemExit as stop:
        status = stop.code
    return status, *capsys.readouterr()
