"""The app behind nginx as docs/hosting has it: TLS, a path of its own, the websocket, two servers, restarts."""

import ssl
import subprocess
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from driving import PATIENCE, Visit, serve
from processes import ROOT, free_port

pytestmark = [pytest.mark.browser, pytest.mark.nginx]

WHOLE = """user root;
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


class Nginx:
    """nginx with the site of docs/hosting, on a port of this machine, before two servers on others."""

    def __init__(self, folder, app_port, other_port):
        self.folder, self.port = folder, free_port()
        certificate, key = folder / "whitelab.pem", folder / "whitelab.key"
        ask = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
        subprocess.run([*ask, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
        site = (ROOT / "docs/hosting/nginx.conf").read_text()
        for ours, here in (
            ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"),
            ("whitelab.example.org", "127.0.0.1"),
            ("/etc/ssl/certs/whitelab.pem", str(certificate)),
            ("/etc/ssl/private/whitelab.key", str(key)),
            ("server 127.0.0.1:8501", f"server 127.0.0.1:{app_port}"),
            ("server 127.0.0.1:8502", f"server 127.0.0.1:{other_port}"),
        ):
            assert ours in site
            site = site.replace(ours, here)
        (folder / "site.conf").write_text(site)
        (folder / "nginx.conf").write_text(WHOLE.format(folder=folder))
        self.command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)

    def reload(self):
        """What `systemctl reload nginx` does."""
        subprocess.run([*self.command, "-s", "reload"], check=True, capture_output=True)

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture
def below(cache, tmp_path):
    """Start the app below /whitelab, always on the same port."""
    port, servers = free_port(), []

    def start():
        if servers:
            servers[-1].stop()
        servers.append(serve(cache, tmp_path / f"app-{len(servers)}.log", port=port, path="whitelab"))
        return port

    yield start
    servers[-1].stop()


@pytest.fixture
def other():
    """The port of a second server, which says only that it is there."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"other")

        def log_message(self, *_):
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def asked(url, cookie=""):
    """What answers, and the cookie it leaves."""
    request = urllib.request.Request(f"{url}/whitelab/_stcore/health", headers={"Cookie": cookie} if cookie else {})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=20) as answer:
        left = [one.split(";")[0] for one in answer.headers.get_all("Set-Cookie")]
        return answer.read().decode(), next(one for one in left if one.startswith("whitelab="))


def seats(url):
    """A cookie for each of the servers that new visitors are dealt to; with it a visitor stays there."""
    dealt = dict(asked(url) for _ in range(40))
    for who, cookie in dealt.items():
        assert {asked(url, cookie) for _ in range(5)} == {(who, cookie)}
    return dealt


def test_the_app_behind_nginx_draws_moves_and_outlives_restarts_of_both(below, other, tmp_path, chromium, scored):
    nginx = Nginx(tmp_path, below(), other)
    shown = Visit.start(chromium, f"https://127.0.0.1:{nginx.port}")
    try:
        dealt, page = seats(shown.base), shown.page
        assert dealt.keys() == {"ok", "other"}
        name, value = dealt["ok"].split("=")
        shown.context.add_cookies([{"name": name, "value": value, "url": f"{shown.base}/whitelab/"}])
        page.goto(shown.base)
        page.wait_for_url(f"{shown.base}/whitelab/**", timeout=PATIENCE * 1000)
        shown.complete()
        assert shown.live() == scored()
        page.get_by_role("link", name="Dimensions", exact=True).first.click()
        page.wait_for_url(f"{shown.base}/whitelab/dimensions**", timeout=PATIENCE * 1000)
        shown.complete()
        assert [url for url in (page.url,) if not url.startswith(f"{shown.base}/whitelab/")] == []
        nginx.reload()
        shown.choose("Variant", "Raw")
        shown.await_live(scored(whitening="none"))
        # A file that was under way when nginx let go of its connections is asked for again.
        assert [error for error in shown.errors if "net::ERR" not in error] == shown.outside == []
        below()  # the connection is lost, and made anew by the browser itself
        page.wait_for_function("document.querySelector('[data-testid=stConnectionStatus]') === null")
        shown.choose("Variant", "ZCA whitening")
        shown.await_live(scored(whitening="zca"))
        shown.note_tracebacks()
        assert [error for error in shown.errors if "exception" in error] == []
    finally:
        shown.context.close()
        nginx.stop()
