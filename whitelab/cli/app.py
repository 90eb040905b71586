"""`app`: the laboratory in a browser."""

import argparse
import os
import socket
import sys

from whitelab.base.budget import VARIABLE, budget, gib_in
from whitelab.base.installation import shipped
from whitelab.base.switches import THREADS, TRAINING, switched_on, threads_each

ARENAS = "MALLOC_ARENA_MAX"  # `keep_freed_memory` says what for
# What strangers may do, and that many of them compute at once: settings of the environment, each of which stays as the
# operator has set it.
HOSTED = {
    TRAINING: "off",
    "WHITELAB_MODELS": "bundled",
    "WHITELAB_DATA": "demo",
    THREADS: "1",
    ARENAS: "1",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8501, help="where it listens (default: 8501)")
    parser.add_argument("--address", default="127.0.0.1", help="0.0.0.0 serves the whole network (default: 127.0.0.1)")
    parser.add_argument("--base-path", default="", help="where a proxy in front serves it, such as /whitelab")
    parser.add_argument(
        "--hosted",
        action="store_true",
        help="for many visitors one does not know: no training, only the bundled model and data, one thread for each "
        "operation, and results in a quarter of the memory, unless WHITELAB_TRAINING, WHITELAB_MODELS, WHITELAB_DATA, "
        "WHITELAB_THREADS or WHITELAB_MEMORY_GIB say otherwise",
    )
    parser.add_argument("--headless", action="store_true", help="do not open a browser")


def run(args):
    """Serve the app until it is stopped. Relative paths typed in it start where the command was started."""
    # -P: nothing in the folder one happens to be in takes the place of a module.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(shipped("app.py")), "--server.port", str(args.port)]
    command += ["--server.address", args.address, "--server.headless", str(args.headless).lower()]
    path = args.base_path.strip("/")
    command += ["--server.baseUrlPath", path] if path else []
    memory = budget()
    gib_in("WHITELAB_CACHE_GIB")  # what would end every page ends here, as budget does
    threads_each()
    for name, usual in (HOSTED | {VARIABLE: f"{memory / 2**30:.2f}"}).items() if args.hosted else ():
        if not os.environ.get(name, "").strip(" ,"):
            os.environ[name] = usual
    switched_on(TRAINING)
    _check_place(args.address, args.port)
    print(f"whitelab: http://{args.address}:{args.port}/{path}", flush=True)
    # Streamlit finds the pages and .streamlit/config.toml beside app.py, which says more than one in this folder.
    if os.name == "posix":
        os.execv(command[0], command)  # in this process's place, so that whoever stops it stops the server
    import subprocess

    raise SystemExit(subprocess.run(command, check=False).returncode)


def _check_place(address: str, port: int) -> None:
    """Raise ValueError for a place where nothing can listen, which Streamlit ends in a traceback."""
    if not 1 <= port <= 65535:
        raise ValueError(f"port={port} must lie between 1 and 65535")
    try:
        family, kind, *_, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server started anew
            probe.bind(place)
    except OSError as error:
        raise ValueError(f"nothing can listen at --address {address} --port {port}: {error.strerror}") from None
