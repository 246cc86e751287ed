"""Live progress of a run, for people: a line that moves in a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any, Self

from toolmem.flow.report import Event
from toolmem.readers.plain_text import escaped

QUIET = 2.0  # seconds: where what is shown stays (a pipe, a notebook), a step that is over by then shows nothing
BETWEEN_LINES = 10.0  # seconds between two lines of one step in a pipe
BETWEEN_UPDATES = 0.25  # seconds between two updates in a notebook
_BAR = 20  # characters: with the longest name and count of an evaluation, a line of 80


class ProgressLine:
    """A listener of an app's events that shows how far the run is.

        with ProgressLine() as progress:
            app.listeners.append(progress)
            ...

    `phase` names what comes next; without phases each op is one. In a terminal the line moves on stderr and is gone at
    the end. In a notebook (`notebook=True`) it moves in the cell's output and leaves what was done, if it took longer
    than two seconds. Elsewhere each phase is a line on stderr, and a long step says every ten seconds how far it is.
    """

    def __init__(self, *, notebook: bool = False) -> None:
        self._view: _Lines | _MovingLine = _Lines()
        if notebook or sys.stderr.isatty():
            self._view = _Notebook() if notebook else _Terminal()
        self._phases = False
        self._told: Event | None = None

    def phase(self, name: str) -> None:
        self._phases = True
        self._begin(name)

    def _begin(self, name: str) -> None:
        self._told = None
        self._view.begin(name, named=self._phases)

    def __call__(self, event: Event) -> None:
        if event.kind == "notice":
            self._view.say(event.message)
        elif event.kind == "op_started" and not self._phases:
            self._begin(event.op)
        elif event.kind == "progress":
            self._told = event
        if self._told is not None and event.kind in ("progress", "request"):  # an answer says that the step goes on
            self._view.advance(self._told.done, self._told.total, self._told.message)

    def __enter__(self) -> Self:
        self._view.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._view.stop()


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Lines:
    def __init__(self) -> None:
        self._name = ""
        self._started = self._begun = self._last = time.monotonic()

    def begin(self, name: str, *, named: bool) -> None:
        self._name, self._begun, self._last = name, time.monotonic(), 0.0
        if named:
            self.say(f"{name} ...")

    def advance(self, done: int, total: int, unit: str) -> None:
        now = time.monotonic()
        if now - self._begun < QUIET or now - self._last < BETWEEN_LINES or done >= total:
            return
        self._last = now
        self.say(f"{self._name}: {done:,} of {total:,} {unit or 'done'} after {now - self._started:.0f} s")

    def say(self, text: str) -> None:
        print(escaped(text), file=sys.stderr, flush=True)

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class _MovingLine:
    """One line of rich's; what shows it is up to the subclass."""

    def __init__(self, console: Any, *, transient: bool) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress: Any = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=_BAR),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=transient,
            redirect_stdout=False,  # results go to stdout, whatever moves on stderr
        )

    def begin(self, name: str, *, named: bool) -> None:
        """The line's next step, whose count is not known yet; the time is that of the whole run."""
        if not self._progress.tasks:
            self._progress.add_task(name, total=None, count="")
            return
        (line,) = self._progress.tasks
        line.description, line.completed, line.total, line.finished_time = name, 0, None, None
        line.fields["count"] = ""

    def advance(self, done: int, total: int, unit: str) -> None:
        for line in self._progress.tasks:
            self._progress.update(line.id, completed=done, total=total, count=f"{done}/{total} {unit}".rstrip())

    def say(self, text: str) -> None:
        self._progress.console.print(escaped(text), highlight=False, markup=False)

    def start(self) -> None:
        self._progress.start()

    def stop(self) -> None:
        self._progress.stop()


class _Terminal(_MovingLine):
    def __init__(self) -> None:
        from rich.console import Console

        super().__init__(Console(stderr=True), transient=True)


class _Notebook(_MovingLine):
    """The terminal's line as HTML in an output of the cell that is updated in place."""

    def __init__(self) -> None:
        import io

        from rich.console import Console

        # Not a Jupyter console: rich would ask for ipywidgets, and these load their scripts from elsewhere.
        self._console = Console(file=io.StringIO(), record=True, width=100, force_jupyter=False, force_terminal=True)
        super().__init__(self._console, transient=False)
        self._output: Any = None
        self._begun = time.monotonic()
        self._last = 0.0
        self._steps: list[tuple[str, float]] = []  # and when it began

    def begin(self, name: str, *, named: bool) -> None:
        self._steps.append((name, time.monotonic()))
        super().begin(name, named=named)
        self._show()

    def advance(self, done: int, total: int, unit: str) -> None:
        super().advance(done, total, unit)
        self._show()

    def say(self, text: str) -> None:
        print(escaped(text))

    def start(self) -> None:
        self._begun = time.monotonic()

    def stop(self) -> None:
        if self._output is None:
            return
        ends = [*(begun for _, begun in self._steps[1:]), time.monotonic()]
        took = [f"{name} {end - begun:.1f} s" for (name, begun), end in zip(self._steps, ends, strict=True)]
        self._put(_as_text(", ".join(took)))

    def _show(self) -> None:
        now = time.monotonic()
        if now - self._begun >= QUIET and now - self._last >= BETWEEN_UPDATES:
            self._last = now
            self._console.print(self._progress.get_renderable())
            self._put(self._console.export_html(inline_styles=True, code_format=_as_text("{code}"), clear=True))

    def _put(self, html: str) -> None:
        cell: Any = import_module("IPython.display")
        if self._output is None:
            self._output = cell.display(cell.HTML(html), display_id=True)
        else:
            self._output.update(cell.HTML(html))


def _as_text(text: str) -> str:
    return f'<pre style="white-space:pre-wrap;line-height:normal;font-family:monospace">{text}</pre>'
