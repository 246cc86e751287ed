"""The `toolmem` command: one module per group of commands, put together in `commands`.

Results go to stdout, progress and messages to stderr. Exit codes: 0 success; 1 partial, failed, or a named thing was
not found; 2 refused before any work; 3 budget reached; 4 an op raised an error of its own; 5 the guard stops the call
(`toolmem guard check`: whoever asks must not take a store in trouble for a ban); 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from toolmem.errors import BudgetReached, Refused, ToolMemError, raised_by

INTERRUPTED = "interrupted: what was acknowledged is stored"


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point: arranges ReMe's way of writing overrides, and turns errors into exit codes."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    own = arguments.index("--") if "--" in arguments else len(arguments)
    debug = "--debug" in arguments[:own]
    arguments = [each for each in arguments[:own] if each != "--debug"] + arguments[own:]
    try:
        # Imported here, because an interrupt while the commands are being imported is one like any other.
        from toolmem.cli.commands import app, arrange, option_names

        app(arrange(arguments, option_names()), standalone_mode=True)
    except Refused as error:
        _complain(error)
        sys.exit(2)
    except BudgetReached as error:
        _complain(error)
        sys.exit(3)
    except ToolMemError as error:
        _complain(error)
        sys.exit(1)
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        sys.exit(130)
    except SystemExit as left:  # of an interrupt the parser makes an exit, and says nothing
        if left.code == 130 and _was_interrupted(left.__context__):
            print(INTERRUPTED, file=sys.stderr)
        raise
    except BrokenPipeError:  # the reader of our output has gone, e.g. `toolmem ... | head`
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        if _follows_an_interrupt(error):
            print(INTERRUPTED, file=sys.stderr)
            sys.exit(130)
        if not raised_by(error):
            raise
        _complain_of_op(error, debug)
        sys.exit(4)


def _was_interrupted(exit: BaseException | None) -> bool:
    """Whether the parser left because of an interrupt; a command that ends by one on purpose has said so itself."""
    return exit is not None and _follows_an_interrupt(exit.__cause__)


def _follows_an_interrupt(error: BaseException | None) -> bool:
    """Whether this error was raised while an interrupt was being handled: a library's way of being cut off."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _complain(error: ToolMemError) -> None:
    from toolmem.readers.plain_text import escaped

    print(f"toolmem: {escaped(str(error))}", file=sys.stderr)


def _complain_of_op(error: Exception, debug: bool) -> None:
    from toolmem.readers.plain_text import escaped

    if debug:
        import traceback

        traceback.print_exception(error)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    print(f"toolmem: {escaped(said)} ({raised_by(error)}{'' if debug else '; --debug shows where'})", file=sys.stderr)
