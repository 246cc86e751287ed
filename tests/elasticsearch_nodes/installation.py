"""A node made of the artifacts that Elasticsearch publishes for Maven, kept in `.elasticsearch`.

Such a node has the server and its HTTP transport. It has no scripts, security, ingest or reindex.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
VERSION = "8.19.4"
OLDEST_JAVA = 17
PLUGIN = "transport-netty4"
DESCRIPTOR = f"""\
name={PLUGIN}
description=Netty based transport implementation
version={VERSION}
elasticsearch.version={VERSION}
java.version=17
classname=org.elasticsearch.transport.netty4.Netty4Plugin
"""


class Missing(Exception):
    """What this machine lacks for a server."""


class Installation(NamedTuple):
    """Folders of the server."""

    jars: Path  # the module path
    modules: Path
    launcher: Path  # compiled


def installed(cache: Path) -> Installation:
    """Put together where it is not there yet: 40 MB, once. Raises Missing."""
    _require_tools()
    recipe = b"".join((HERE / name).read_bytes() for name in ("Launcher.java", "pom.xml"))
    folder = cache / f"elasticsearch-{VERSION}-{sha256(recipe).hexdigest()[:8]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=cache, prefix="unfinished-"))
        try:
            _put_together(work)
            work.rename(folder)
        except OSError:
            if not folder.is_dir():  # else somebody else was quicker
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return Installation(folder / "jars", folder / "modules", folder / "launcher")


def _require_tools() -> None:
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            packages = "openjdk-17-jdk-headless maven"
            raise Missing(f"there is no {tool} (on Debian: apt-get install {packages})")
    said = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < OLDEST_JAVA:
        raise Missing(f"Java {OLDEST_JAVA} or newer is needed, this is {said[:60]!r}")


def _put_together(work: Path) -> None:
    jars, modules, launcher = work / "jars", work / "modules" / PLUGIN, work / "launcher"
    pom = shutil.copy(HERE / "pom.xml", work / "pom.xml")
    _run(
        *("mvn", "-B", "-q", "-f", str(pom), f"-Dmaven.repo.local={work / 'maven'}"),
        f"-Delasticsearch.version={VERSION}",
        *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"),
    )
    shutil.rmtree(work / "maven")
    modules.mkdir(parents=True)
    for jar in [*jars.glob("netty-*.jar"), *jars.glob(f"{PLUGIN}-*.jar")]:
        jar.rename(modules / jar.name)
    (modules / "plugin-descriptor.properties").write_text(DESCRIPTOR, encoding="utf-8")
    classpath = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
    _run("javac", "-cp", classpath, "-d", str(launcher), str(HERE / "Launcher.java"))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise Missing(f"{command[0]} failed with {done.returncode}:\n{tail}")
