"""`app`: the laboratory in a browser."""

import argparse
import sys
from pathlib import Path


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--address", default="127.0.0.1", help="0.0.0.0 serves the whole network")
    parser.add_argument("--headless", action="store_true", help="do not open a browser")


def run(args):
    import subprocess

    app = Path(__file__).resolve().parents[2] / "app.py"
    command = [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(args.port)]
    command += ["--server.address", args.address, "--server.headless", str(args.headless).lower()]
    # The settings and the page folder are found from the folder of app.py.
    subprocess.run(command, cwd=app.parent, check=False)
    return None, []
