"""Loops of a coding agent's ordinary days: the same call again, and none of them without reason.

A step is what is done, and what came of it: "" worked, else the error. `$ ...` is a command, `read PATH`, `edit PATH`
and `write PATH` are the agent's tools for files; what agents send beside their arguments is in `AGENTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Step = tuple[str, str]
Arguments = dict[str, Any]

UNREAD = "File has not been read yet. Read it first before writing to it."
CHANGED = "File has been modified since read, either by the user or by a linter. Read it again before writing to it."
REFUSED = "curl: (7) Failed to connect to 127.0.0.1 port 8000: Connection refused"
PYTEST = "FAILED tests/test_a.py::test_a - AssertionError\n1 failed, 41 passed in 2.31s"
JEST = "FAIL src/a.test.ts\nTests:       1 failed, 12 passed, 13 total"
CARGO = "test a::tests::adds ... FAILED\ntest result: FAILED. 11 passed; 1 failed; 0 ignored"
GO = "--- FAIL: TestAdds (0.00s)\nFAIL\nFAIL\texample.com/a\t0.012s"
OK = ""

LOOPS: dict[str, list[Step]] = {
    # time passes, or the outside is asked
    "poll a health check": [("$ curl -sf http://127.0.0.1:8000/health", REFUSED)] * 6,
    "poll a health check with a pause": [("$ curl -sf localhost:8000", REFUSED), ("$ sleep 5", OK)] * 6,
    "poll in one command": [("$ sleep 10 && gh run view 12 --exit-status", "X main CI · 12\nexit status 1")] * 5,
    "wait for the checks of a request": [("$ gh pr checks 12", "build\tpending\t0\nlint\tfail\t4s")] * 6,
    "wait for a container": [("$ docker inspect -f '{{.State.Health.Status}}' db", "Error: No such object: db")] * 5,
    "look at containers": [("$ docker ps --filter name=db", "Cannot connect to the Docker daemon")] * 4,
    "wait for a database": [("$ pg_isready -h localhost", "localhost:5432 - no response")] * 6,
    "wait for a database by asking it": [
        ("$ psql -h localhost -c 'select 1'", "psql: error: connection to server failed: Connection refused")
    ]
    * 6,
    "wait for a database that starts": [
        ("$ mysql -h 127.0.0.1 -e 'select 1'", "ERROR 2002 (HY000): Can't connect to MySQL server on '127.0.0.1' (111)")
    ]
    * 6,
    "wait for a deployment": [("$ kubectl rollout status deploy/api --timeout=5s", "error: timed out")] * 5,
    "wait for a port": [("$ nc -z localhost 5432", "Exit code 1")] * 6,
    "wait for a file with a pause": [("$ test -f build/out.js", "Exit code 1"), ("$ sleep 2", OK)] * 5,
    "wait for a line in a log": [("$ grep -q ready server.log", "Exit code 1"), ("$ sleep 2", OK)] * 5,
    "wait for a log with a pause that is long": [
        ("$ tail -n 5 worker.log", "tail: cannot open 'worker.log' for reading: No such file or directory"),
        ("$ sleep 30; echo done", OK),
        ("$ tail -n 5 worker.log", OK),
    ],
    "look into a log": [("$ tail -n 20 app.log | grep Listening", "Exit code 1")] * 4,
    "read a log": [("read server.log", "File does not exist.")] * 4,
    "a build elsewhere": [("wait 0", "Error: build 12 is still running")] * 4,
    "pause in PowerShell": [
        ("$ Get-Content out.log", "Cannot find path 'out.log' because it does not exist."),
        ("$ Start-Sleep -Seconds 5", OK),
        ("$ Get-Content out.log", OK),
    ],
    "pause in a script": [
        ("$ cat out.json", "cat: out.json: No such file or directory"),
        ("$ python3 -c 'import time; time.sleep(5)'", OK),
        ("$ cat out.json", OK),
    ],
    "a tool that waits": [("$ cat out.json", "cat: out.json: No such file or directory"), ("wait 5", OK)] * 4,
    "a pause in a command that failed": [
        ("$ cat out.json", "cat: out.json: No such file or directory"),
        ("$ sleep 3; test -f out.json", "Exit code 1"),
        ("$ cat out.json", OK),
    ],
    "start a server and ask it": [
        ("$ npm run dev > dev.log 2>&1 &", OK),
        *[("$ node check.js", "Error: connect ECONNREFUSED 127.0.0.1:3000")] * 5,
    ],
    "ask a server by a script of one's own": [
        ("$ python scripts/smoke.py", "requests.exceptions.ConnectionError: Connection refused")
    ]
    * 6,
    "containers that start apart": [
        ("$ docker compose up -d", OK),
        *[("$ python manage.py check --database default", "OperationalError: the database system is starting up")] * 4,
    ],
    "a page that is not there yet": [("fetch https://docs.example.com/v2", "404 Not Found")] * 4,
    # git
    "push after pull": [
        ("$ git push origin dev", " ! [rejected] dev -> dev (fetch first)\nerror: failed to push some refs"),
        ("$ git pull --rebase origin dev", OK),
        ("$ git push origin dev", OK),
    ],
    "push after fetch and merge": [
        ("$ git push", " ! [rejected] dev -> dev (non-fast-forward)"),
        ("$ git fetch origin", OK),
        ("$ git merge origin/dev", OK),
        ("$ git push", OK),
    ],
    "push until the checks are through": [
        ("$ git push origin main", "remote: error: Required status check is expected.\n ! [remote rejected]"),
        ("$ git log -1 --oneline", OK),
    ]
    * 3,
    "name the remote and push": [
        ("$ git push -u origin dev", "fatal: 'origin' does not appear to be a git repository"),
        ("$ git remote add origin git@example.com:a/b.git", OK),
        ("$ git push -u origin dev", OK),
    ],
    "name the author and commit": [
        ("$ git commit -m 'Begin'", "fatal: unable to auto-detect email address"),
        ("$ git config user.email a@example.com", OK),
        ("$ git commit -m 'Begin'", OK),
    ],
    "stash and pull": [
        ("$ git pull", "error: Your local changes to the following files would be overwritten by merge: a.py"),
        ("$ git stash", OK),
        ("$ git pull", OK),
    ],
    "merge, solve, test": [
        ("$ make test", "Exit code 2\nmake: *** [test] Error 1"),
        ("$ git merge dev", "CONFLICT (content): Merge conflict in a.py\nAutomatic merge failed; fix conflicts"),
        ("$ make test", "Exit code 2\nmake: *** [test] Error 1"),
    ],
    "a hook that formats before a commit": [
        ("$ git commit -m 'Repair'", "black....Failed\n- files were modified by this hook\nreformatted a.py"),
        ("$ git add -A", OK),
        ("$ git commit -m 'Repair'", OK),
    ],
    "all hooks, which format": [
        (
            "$ pre-commit run --all-files",
            "ruff-format....Failed\n- files were modified by this hook\n2 files reformatted",
        )
    ]
    * 2,
    "a lock that git left": [
        ("$ git add -A", "fatal: Unable to create '.git/index.lock': File exists."),
        ("$ rm -f .git/index.lock", OK),
        ("$ git add -A", OK),
    ],
    # files
    "edit, read it first, edit": [("edit a.py", UNREAD), ("read a.py", OK), ("edit a.py", OK)],
    "edit what was changed meanwhile": [("edit a.py", CHANGED), ("read a.py", OK), ("edit a.py", OK)],
    "write, read it first, write": [("write a.py", UNREAD), ("read a.py", OK), ("write a.py", OK)],
    "edit, look at it with cat, edit": [("edit a.py", UNREAD), ("$ cat a.py", OK), ("edit a.py", OK)],
    "read what another tool wrote": [
        ("read out.md", "File does not exist."),
        ("write out.md", OK),
        ("read out.md", OK),
    ],
    "read what a command made": [
        ("read dist/a.js", "File does not exist."),
        ("$ npm run build", OK),
        ("read dist/a.js", OK),
    ],
    # build, test, lint
    "flaky tests of pytest": [("$ pytest -q", PYTEST)] * 4,
    "flaky tests of jest": [("$ npm test", JEST)] * 4,
    "flaky tests of cargo": [("$ cargo test", CARGO)] * 4,
    "flaky tests of go": [("$ go test ./...", GO)] * 4,
    "flaky tests of unittest": [("$ python -m unittest", "Ran 3 tests in 0.1s\n\nFAILED (failures=1)")] * 4,
    "flaky tests of Maven": [("$ mvn -q test", "Tests run: 4, Failures: 1, Errors: 0, Skipped: 0")] * 4,
    "flaky tests of mocha": [("$ npx mocha", "  3 passing (12ms)\n  1 failing")] * 4,
    "flaky tests of a script": [("$ ./scripts/test.sh unit", "not ok 3 - adds\n# Failed 1 of 12 tests")] * 4,
    "build after edit": [("$ make", "Exit code 2\na.c:3: error: expected ';'"), ("edit a.c", OK), ("$ make", OK)],
    "build, edit, build, edit": [("$ cargo build", "error[E0308]: mismatched types"), ("edit src/a.rs", OK)] * 4,
    "make after another tool wrote": [
        ("$ make", "Exit code 2\nmake: *** No rule to make target 'b.c'."),
        ("write b.c", OK),
        ("$ make", OK),
    ],
    "lint, fix, lint": [
        ("$ ruff check .", "a.py:1:1: F401 `os` imported but unused\nFound 1 error."),
        ("$ ruff check --fix .", OK),
        ("$ ruff check .", OK),
    ],
    "lint, fix some, lint": [
        ("$ eslint src", "src/a.ts\n  1:1  error  Missing semicolon  semi\n2 problems (2 errors)"),
        ("$ eslint --fix src", "src/a.ts\n  9:1  error  no-explicit-any\n1 problem (1 error)"),
        ("$ eslint src", "src/a.ts\n  9:1  error  no-explicit-any\n1 problem (1 error)"),
    ],
    "fix some and test": [
        ("$ npm run check", "error TS2304: Cannot find name 'a'."),
        ("$ ruff check --fix .", "Found 5 errors (3 fixed, 2 remaining)."),
        ("$ npm run check", OK),
    ],
    "format, then check": [
        ("$ prettier --check .", "[warn] src/a.ts\n[warn] Code style issues found in the above file."),
        ("$ prettier --write .", OK),
        ("$ prettier --check .", OK),
    ],
    "install and run": [
        ("$ python app.py", "ModuleNotFoundError: No module named 'flask'"),
        ("$ pip install -r requirements.txt", OK),
        ("$ python app.py", OK),
    ],
    "install within a command that failed": [
        ("$ npm run build", "Error: Cannot find module 'vite'"),
        ("$ npm ci && npm run lint", "src/a.ts: error\n1 problem (1 error)"),
        ("$ npm run build", OK),
    ],
    "make a folder and copy": [
        ("$ cp a.txt out/", "cp: cannot create regular file 'out/': Not a directory"),
        ("$ mkdir -p out", OK),
        ("$ cp a.txt out/", OK),
    ],
    "permission": [
        ("$ ./run.sh", "bash: ./run.sh: Permission denied"),
        ("$ chmod +x run.sh", OK),
        ("$ ./run.sh", OK),
    ],
    "permission by sudo": [
        ("$ cat /var/log/app.log", "cat: /var/log/app.log: Permission denied"),
        ("$ sudo chmod a+r /var/log/app.log", OK),
        ("$ cat /var/log/app.log", OK),
    ],
    "set a variable": [
        ("$ npm publish --dry-run", "npm ERR! need auth"),
        ("$ export NPM_TOKEN=x", OK),
        ("$ npm publish --dry-run", OK),
    ],
    "go to the folder": [
        ("$ npm test", "npm ERR! enoent Could not read package.json"),
        ("$ cd web", OK),
        ("$ npm test", OK),
    ],
    "activate an environment": [
        ("$ pytest", "bash: pytest: command not found"),
        ("$ source .venv/bin/activate", OK),
        ("$ pytest", OK),
    ],
    "a port that is taken": [
        ("$ npm start", "Error: listen EADDRINUSE: address already in use :::3000"),
        ("$ kill 4711", OK),
        ("$ npm start", OK),
    ],
    "migrate and test": [
        ("$ python manage.py test", "django.db.utils.OperationalError: no such table: a"),
        ("$ python manage.py migrate", OK),
        ("$ python manage.py test", OK),
    ],
    "a lock of a package manager": [
        (
            "$ apt-get install -y jq",
            "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 12 (apt)",
        ),
        ("$ sleep 10", OK),
    ]
    * 3,
    "a service that is restarted": [
        ("$ python client.py", "RuntimeError: worker is gone"),
        ("$ systemctl restart worker", OK),
        ("$ python client.py", OK),
    ],
}


@dataclass(frozen=True)
class Agent:
    """What an agent calls its tools, and what it hands them."""

    shell: str
    command: Callable[[str], Arguments]
    exit_code: str = "Exit code 1\n{}"  # around what a command that failed wrote
    read: str = "read_file"
    edit: str = "edit_file"
    write: str = "write_file"
    fetch: str = "web_fetch"
    path: str = "file_path"


AGENTS: dict[str, Agent] = {
    "claude-code": Agent(
        "Bash",
        lambda text: {"command": text, "description": "Update the state of things", "timeout": 60000},
        read="Read",
        edit="Edit",
        write="Write",
        fetch="WebFetch",
    ),
    "codex": Agent("Bash", lambda text: {"command": text}, "{}"),
    "copilot": Agent(
        "Bash",
        lambda text: {"command": text, "description": "Run it", "mode": "sync", "initial_wait": 30},
        "{}",
        "Read",
        "Edit",
        "Write",
        "WebFetch",
        "path",
    ),
    "gemini": Agent(
        "run_shell_command",
        lambda text: {"command": text, "description": "Runs it.", "is_background": False},
        "{}",
        edit="replace",
    ),
    "cursor": Agent(
        "Shell",
        lambda text: {"command": text, "working_directory": "/p", "block_until_ms": 30000, "description": "Run it"},
        "{}",
        "Read",
        "StrReplace",
        "Write",
        "WebFetch",
        "path",
    ),
    "goose": Agent("developer__shell", lambda text: {"command": text}, "{}", edit="developer__edit"),
    "cline": Agent(
        "run_commands", lambda text: {"commands": [text]}, "{}\nCommand exited with code 1", "read_files", "editor"
    ),
    "opencode": Agent(
        "bash",
        lambda text: {"command": text, "description": "Runs it", "workdir": "/p", "timeout": 120000},
        "{}",
        "read",
        "edit",
        "write",
        "webfetch",
        "filePath",
    ),
}


def call_of(agent: Agent, step: str) -> tuple[str, Arguments]:
    """The tool and the arguments of a step."""
    kind, _, what = step.partition(" ")
    if kind == "$":
        return agent.shell, agent.command(what)
    if kind == "fetch":
        return agent.fetch, {"url": what, "prompt": "What does it say?"}
    if kind == "wait":
        return "wait", {"seconds": int(what)}
    given: dict[str, Arguments] = {
        "read": {agent.path: f"/p/{what}"},
        "edit": {agent.path: f"/p/{what}", "old_string": "a", "new_string": "b"},
        "write": {agent.path: f"/p/{what}", "content": "a"},
    }
    return str(getattr(agent, kind)), given[kind]


def output_of(agent: Agent, step: str, error: str) -> str:
    if not error:
        return "fine"
    return agent.exit_code.format(error) if step.startswith("$") and not error.startswith("Exit code") else error
