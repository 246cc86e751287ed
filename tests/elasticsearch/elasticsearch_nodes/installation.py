"""A node made of the artifacts that Elasticsearch publishes for Maven: put together once, kept in the user's cache.

Such a node has the server and its HTTP transport. It has no scripts, no security, no ingest, no reindex.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
VERSION = os.environ.get("TOOLMEM_ELASTICSEARCH_VERSION", "8.19.4")
OLDEST_JAVA = 17
_PLUGIN = "transport-netty4"
_DESCRIPTOR = """\
name={name}
description=Netty based transport implementation
version={version}
elasticsearch.version={version}
java.version=17
classname=org.elasticsearch.transport.netty4.Netty4Plugin
"""


class Missing(Exception):
    """What this machine lacks for a server; the message is the reason of a skip."""


@dataclass(frozen=True)
class Installation:
    """Folders of the put-together server."""

    jars: Path  # the module path
    modules: Path
    launcher: Path  # compiled


def installed() -> Installation:
    """Put together where it is not there yet (about a minute and 40 MB, once). Raises Missing."""
    _require_tools()
    folder = _cache() / f"elasticsearch-{VERSION}-{_recipe()}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="unfinished-") as work:
            _put_together(Path(work))
            try:
                os.rename(work, folder)
            except OSError:
                if not folder.is_dir():  # otherwise somebody else was quicker
                    raise
            else:
                Path(work).mkdir()  # for the context manager to remove
    return Installation(folder / "jars", folder / "modules", folder / "launcher")


def _recipe() -> str:
    """Changes with what the server is put together by."""
    return sha256(b"".join((HERE / name).read_bytes() for name in ("Launcher.java", "pom.xml"))).hexdigest()[:8]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolmem"


def _require_tools() -> None:
    for tool, package in (("java", "a JRE"), ("javac", "a JDK"), ("mvn", "Maven")):
        if shutil.which(tool) is None:
            raise Missing(f"there is no {tool} ({package}; on Debian: apt-get install openjdk-17-jdk-headless maven)")
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < OLDEST_JAVA:
        raise Missing(f"Java {OLDEST_JAVA}+ is needed, this is: {said.splitlines()[0] if said else 'unknown'}")


def _put_together(work: Path) -> None:
    jars, modules, launcher = work / "jars", work / "modules" / _PLUGIN, work / "launcher"
    shutil.copy(HERE / "pom.xml", work / "pom.xml")
    _run(
        [
            *("mvn", "-B", "-q", "-f", str(work / "pom.xml"), f"-Delasticsearch.version={VERSION}"),
            *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"),
        ]
    )
    modules.mkdir(parents=True)
    for jar in [*jars.glob("netty-*.jar"), *jars.glob(f"{_PLUGIN}-*.jar")]:
        jar.rename(modules / jar.name)
    (modules / "plugin-descriptor.properties").write_text(
        _DESCRIPTOR.format(name=_PLUGIN, version=VERSION), encoding="utf-8"
    )
    classpath = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
    _run(["javac", "-cp", classpath, "-d", str(launcher), str(HERE / "Launcher.java")])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise Missing(f"{command[0]} failed with {done.returncode}:\n{tail}")
