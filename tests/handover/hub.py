"""A stand-in for the Hugging Face hub: the calls that creating a repository and committing files make."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import yaml

TOKEN = "hf_of_tests"
LARGE = (".arrow", ".safetensors")
Files = dict[str, bytes]


@dataclass
class Hub:
    """``repositories`` maps such as ``datasets/me/batches`` or ``models/me/encoder`` to files by path."""

    endpoint: str = ""
    repositories: dict[str, Files] = field(default_factory=dict)
    visibility: dict[str, str] = field(default_factory=dict)
    uploaded: dict[str, bytes] = field(default_factory=dict)
    commits: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """What a user sets to push here."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_TOKEN": TOKEN,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",  # its server is another one
        }

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        """Status and JSON for a request."""
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            header = json.loads(body)["content"].split("---\n")[1]
            return 200, {"errors": [], "warnings": [] if yaml.safe_load(header) else [{"message": "empty metadata"}]}
        if path.startswith("/upload/"):
            self.uploaded[path.removeprefix("/upload/")] = body
            return 200, {}
        if path.endswith(".git/info/lfs/objects/batch"):
            return 200, {"transfer": "basic", "objects": [self._transfer(each) for each in json.loads(body)["objects"]]}
        kind, owner, name, verb = [*path.removeprefix("/api/").split("/"), ""][:4]
        key = f"{kind}/{owner}/{name}"
        return self._answer_of(key, verb, body) if key in self.repositories else (404, {"error": "no such repository"})

    def _answer_of(self, key: str, verb: str, body: bytes) -> tuple[int, Any]:
        files = self.repositories[key]
        if verb == "tree":
            return 200, [{"type": "file", "path": file, "size": len(files[file]), "oid": "0"} for file in files]
        if verb == "preupload":
            return 200, {"files": [_mode(each["path"]) for each in json.loads(body)["files"]]}
        assert verb == "commit"
        return self._commit(key, [json.loads(line) for line in body.splitlines()])

    def _create(self, asked: dict[str, Any]) -> tuple[int, Any]:
        name = f"{asked['organization']}/{asked['name']}"
        if asked["organization"] != "me":
            return 403, {"error": "You don't have the rights to create a repository under this namespace"}
        key = f"{asked['type']}s/{name}"
        prefix = "" if asked["type"] == "model" else f"{asked['type']}s/"
        if key in self.repositories:
            return 409, {"error": "You already created this repo", "url": f"{self.endpoint}/{prefix}{name}"}
        self.repositories[key] = {".gitattributes": b""}
        self.visibility[key] = asked["visibility"]
        return 200, {"url": f"{self.endpoint}/{prefix}{name}", "name": name}

    def _transfer(self, asked: dict[str, Any]) -> dict[str, Any]:
        there = {"oid": asked["oid"], "size": asked["size"]}
        if asked["oid"] in self.uploaded:
            return there
        return there | {"actions": {"upload": {"href": f"{self.endpoint}/upload/{asked['oid']}"}}}

    def _commit(self, key: str, lines: list[dict[str, Any]]) -> tuple[int, Any]:
        files = self.repositories[key]
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.uploaded[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        self.commits += 1
        return 200, {"commitUrl": f"{self.endpoint}/{key}/commit/1", "commitOid": "1" * 40}


@contextmanager
def serve() -> Iterator[Hub]:
    """Run a hub on this machine for the length of the block."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}" or self.path.startswith("/upload/")
            status, answer = hub.answer(urlsplit(self.path).path, body) if allowed else (401, {"error": "no token"})
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if "error" in answer:
                self.send_header("X-Error-Message", answer["error"])
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _mode(path: str) -> dict[str, Any]:
    return {"path": path, "uploadMode": "lfs" if path.endswith(LARGE) else "regular", "shouldIgnore": False}
