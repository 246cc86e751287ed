"""Judge calls again whose evaluation failed, in the background, when a person asks for it."""

from __future__ import annotations

import threading

from toolmem.errors import ToolMemError
from toolmem.memory.toolmem import Workspace


class Retries:
    """One run at a time for each workspace; what became of it is told until the next one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._told: dict[str, str] = {}

    def told(self, workspace: str) -> str:
        """What a page says of the newest run; "" where there was none."""
        return self._told.get(workspace, "")

    def start(self, memory: Workspace) -> None:
        """Begin a run, unless one is under way."""
        name, began = memory.workspace_id, memory.rules.local_time()
        with self._lock:
            if name in self._running:
                return
            self._running.add(name)
            self._told[name] = f"Being judged again since {began:%H:%M}."
        threading.Thread(target=self._run, args=(memory,), daemon=True).start()

    def _run(self, memory: Workspace) -> None:
        name, told = memory.workspace_id, "The judge failed."
        try:
            done = memory.run("retry_evaluations")
            told = f"{done.answer}."
            if failures := done.metadata["evaluation"].failures:
                told += f" {failures[0].error}"
        except ToolMemError as error:
            told = f"Nothing was judged: {error}"
        finally:
            with self._lock:
                self._running.discard(name)
                self._told[name] = f"{memory.rules.local_time():%H:%M}: {told}"
