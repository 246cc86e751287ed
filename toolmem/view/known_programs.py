"""Tables of common programs: which take words as data, and what they do with files that they name.

An unknown program may run the words after it, and write the files that it names. If that would
break a rule, the user is asked. So a program that is missing here only costs a question.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from toolmem.text.forms import file_path, host_name, normalized, target_forms, word_set
from toolmem.text.patterns import late_pattern
from toolmem.view.options import without_content
from toolmem.view.shell_programs import (
    CONTAINERS,
    INTERPRETERS,
    PRINTERS,
    READING_PROGRAMS,
    RUNNERS,
    SHELLS,
    WRITING_PROGRAMS,
    program_table,
)

# Programs that do not write their operands, whatever else they do.
_READERS = (READING_PROGRAMS - word_set("sudo time env xargs git")) | word_set(
    "cd pushd popd command builtin hash export unset alias declare local readonly typeset read "
    "shift source . eval wait sleep kill pkill killall pgrep jobs bg fg ulimit umask getopts let "
    "mapfile trap ssh curl wget http https nc telnet ping dig host nslookup ssh-keygen ssh-add "
    "gpg scp rsync sftp python python2 python3 pypy node nodejs bun deno ruby perl php lua java "
    "rscript osascript pytest tox nox coverage jest vitest mocha rspec phpunit mypy pyright "
    "pylint flake8 eslint tsc gcc g++ cc c++ clang clang++ ld rustc javac go cargo cmake make "
    "ninja meson bazel mvn gradle pip pip2 pip3 pipx conda mamba apt apt-get aptitude apt-cache "
    "dpkg dnf yum rpm apk pacman zypper brew port snap npm pnpm yarn gem bundle composer nuget "
    "dotnet helm terraform systemctl service journalctl launchctl crontab mount umount useradd "
    "usermod groupadd passwd aws gcloud az gsutil rclone s3cmd mc gh glab hub psql mysql mariadb "
    "mongosh redis-cli code open xdg-open start vim vi nano emacs ffmpeg convert pandoc hugo "
    "jekyll mkdocs sphinx-build pre-commit docker-compose kubectl oc vagrant ansible "
    "ansible-playbook hg svn bzr gdb lldb unzip tar zip gzip gunzip bzip2 xz zstd 7z lsblk fdisk "
    "dmesg lscpu nproc logger mail sqlite3 initctl update-rc.d a2ensite nginx apachectl certbot "
    "uvicorn gunicorn flask django bat delta difft tldr cheat visudo sysctl logrotate protoc "
    "ts-node tsx esbuild vite webpack rollup parcel rails rake asdf pyenv nvm rbenv shellcheck "
    "hadolint playwright cypress cloc tokei gsed ex ed bsdtar mutt mailx"
)
_ONLY_READ = _READERS - word_set("tar zip gzip bzip2 xz zstd 7z sqlite3 vim vi nano emacs")
# Subcommands of unknown programs that are followed by a name, not by a command.
_NAMES_FOLLOW = word_set(
    "install add remove uninstall upgrade update use local global init new create help info search"
)
# Subcommands of unknown programs that only read the files that they name.
_READING_SUBCOMMANDS = word_set(
    "test check lint build serve start show list status diff view preview"
)
_KNOWN = _READERS | WRITING_PROGRAMS | word_set("git docker podman nerdctl") | SHELLS
# Subcommands of known programs that a command may follow.
_RUN_AFTER = RUNNERS | program_table(
    "git rebase bisect submodule filter-branch difftool mergetool, docker run exec, "
    "podman run exec, nerdctl run exec, docker-compose run exec, kubectl run exec debug, "
    "oc run exec debug rsh, gdb --args, vagrant ssh"
)
KNOWN_PROGRAMS = _KNOWN | _RUN_AFTER.keys()
# Programs that treat each of their operands alike.
_EACH_OPERAND = word_set(
    "rm rmdir unlink shred truncate trash del touch mkdir cat less more head tail wc stat source "
    "bat remove-item"
)
_EACH_OPERAND_GIT = ("add", "rm", "restore", "clean")
_EACH_URL = ("curl", "wget", "http", "https", "xh")
_EACH_AFTER_FIRST = ("chmod", "chown", "chgrp")
# Programs whose first operand is a pattern or a filter, unless an option gives it.
_SEARCHES = word_set("grep egrep fgrep zgrep rg ag ack fd sed gsed jq yq")
_PATTERN_OPTION = late_pattern(r"-[A-Za-z]{0,5}e|--(?:regexp|expression)")
_PATTERN_INSIDE = late_pattern(
    r"-[A-Za-z]{0,5}f|-[ef].+|--(?:regexp|expression|file|files|from-file)(?:=.*)?", re.DOTALL
)
_SEARCH_VALUE = late_pattern(r"-[A-Za-z]{0,3}[ABCmgtT]|--(?:glob|iglob|type|type-not|max-count)")
_MESSAGE_OPTION = late_pattern(r"-[a-z]*m|--message")
# Known programs whose words may hold a command, in a program text or as the value of an option.
_RUN_TEXTS = word_set(
    "awk gawk mawk sed gsed vi vim nvim view ex ed emacs less more man gdb lldb sqlite3 psql mysql "
    "mariadb tar bsdtar rsync ssh scp sftp git mail mailx mutt zip make gnuplot ftp"
)
_TAKE_COMMANDS = word_set("tar bsdtar rsync man less more scp sftp zip")  # in values of options
_SED_RUNS = "|".join(
    rf"s{d}[^{d}\n]{{0,300}}{d}([^{d}\n]{{1,300}}){d}[gpI\d]{{0,4}}e"
    for d in ("/", r"\|", "#", ",")
)
_AWK_RUNS = (
    r"(?:system|popen|exec|spawn|shell(?:-command)?)\s{0,3}[(= ]\s{0,3}[\"'`]?([^\"'`\n]{1,500})"
    r"|[\"']([^\"'\n]{1,500})[\"']\s{0,3}\|"  # "COMMAND" | getline
)
_RUNS_INSIDE = {
    "awk": late_pattern(_AWK_RUNS),
    "sed": late_pattern(rf"(?:^|[\d$;/{{}}\n ])e\s([^\n;}}]{{1,500}})|{_SED_RUNS}"),
    # vim: !COMMAND; git: core.pager=COMMAND
    "": late_pattern(
        rf"{_AWK_RUNS}|!\s{{0,3}}([^\n|]{{1,500}})|(?:[\w.-]{{1,60}}=){{1,3}}([^\n]{{1,500}})"
    ),
}
_TAKE_DATA = PRINTERS | word_set("cat tee grep egrep fgrep rg git gh glab curl http jq logger wc")
MAX_TEXTS_INSIDE = 50  # of one command


def texts_inside(program: str, rest: Sequence[str]) -> Iterator[str]:
    """Yield the commands X in a program's words: `awk 'BEGIN{system("X")}'`, `vim -c '!X'`."""
    if program not in _RUN_TEXTS:
        return
    pattern = _RUNS_INSIDE.get(program[-3:], _RUNS_INSIDE[""])
    for before, word in zip(("", *rest), rest, strict=False):
        if program == "git" and before not in ("-c", "--exec"):
            continue
        if any(map(str.isspace, word)):
            found = islice(pattern.finditer(word), MAX_TEXTS_INSIDE)
            yield from (each[each.lastindex or 0] for each in found)
            if before.startswith("-") and program in _TAKE_COMMANDS:
                yield word


def tail_starts(words: Sequence[str]) -> range:
    """Return the indexes of a command's words at which another command may begin: 1 in `foo rm x`.

    After an unknown program, the last word counts only if it has spaces.
    """
    program = words[0].lower() if words else ""
    if program not in KNOWN_PROGRAMS:
        first = 3 if words[1:2] and words[1] in _NAMES_FOLLOW else 1
        is_text = any(map(str.isspace, words[-1])) if words else False
        return range(first, len(words) if is_text else len(words) - 1)
    after = _RUN_AFTER.get(program, frozenset())
    at = next((i for i, word in enumerate(words[:10]) if word in after), len(words))
    return range(at + 1, len(words))


def takes_data(words: Sequence[str]) -> bool:
    """Whether a program is known to take long words as data and to run none of them."""
    program = words[0].lower() if words else ""
    return program in _TAKE_DATA and (program != "git" or "-c" not in words)


def may_write_operands(words: Sequence[str]) -> bool:
    """Whether a command's program is unknown, and so may write the files that its words name."""
    program = words[0].lower() if words else ""
    if program in _KNOWN or program.startswith(("python", "ruff")):
        return False
    is_script = bool(os.path.splitext(program)[1])  # a script of the project only reads its files
    return not is_script and not _READING_SUBCOMMANDS & set(words[1:2])


def only_reads(words: Sequence[str]) -> bool:
    """Whether a command's program is known not to change the files that its words name."""
    return bool(words) and words[0].lower() in _ONLY_READ


def operand_groups(words: Sequence[str]) -> list[list[str]]:
    """Group a command's operands: `rm a b` gives two groups, [[a], [b]], `mv a b` one, [[a, b]]."""
    program = normalized(words[0]) if words else ""
    if program in PRINTERS:
        return [[]]
    rest = list(map(normalized, _named_words(program, list(words[1:]))))
    alike: list[str] = []
    operands = [word for word in rest if not word.startswith("-")]
    is_git = program == "git" and operands[:1] and operands[0] in _EACH_OPERAND_GIT
    if program in _EACH_OPERAND:
        alike = operands
    elif program in _EACH_AFTER_FIRST or is_git:
        alike = operands[1:]
    elif program in _EACH_URL:
        alike = [word for word in operands if "://" in word]
    if len(alike) > 1:
        return [[word] for word in alike]
    parts = (part for word in rest for part in (word, _value_of(word)) if part)
    return [list(dict.fromkeys(parts))]


def _value_of(word: str) -> str:
    """Return VALUE of `name=VALUE` and `--option=VALUE`; "" for a URL with a query."""
    name, _, value = word.partition("=")
    return "" if "//" in name or "?" in name else value


def _named_words(program: str, rest: list[str]) -> list[str]:
    """Return the words without messages, search patterns, and content that is sent."""
    if program in ("curl", "wget"):
        return list(without_content([program, *rest]))
    if program == "git" and rest[:1] == ["grep"]:
        return _without_pattern(rest[1:])
    if program in _SEARCHES:
        return _without_pattern(rest)
    if program != "git" or rest[:1] not in (["commit"], ["tag"], ["merge"], ["stash"], ["notes"]):
        return rest
    messages = {i + 1 for i, word in enumerate(rest) if _MESSAGE_OPTION.fullmatch(word)}
    named = (word for i, word in enumerate(rest) if i not in messages)
    return [word for word in named if not word.startswith("--message=")]


def _without_pattern(rest: list[str]) -> list[str]:
    """Return a search's words without its pattern: the values of `-e`, or the first operand."""
    patterns = {i + 1 for i, word in enumerate(rest) if _PATTERN_OPTION.fullmatch(word)}
    if not patterns and not any(map(_PATTERN_INSIDE.fullmatch, rest)):
        values = {i + 1 for i, word in enumerate(rest) if _SEARCH_VALUE.fullmatch(word)}
        operands = (i for i, word in enumerate(rest) if word[:1] != "-" and i not in values)
        patterns = {next(operands, -1)}
    return [word for i, word in enumerate(rest) if i not in patterns]


_PATH_IN_WORD = late_pattern(r"[^\s:=]*(?:/|\.[a-z]\w{0,9}$|^\.)[^\s]*")
# `docker run -v FOLDER:/in/the/container`, `--mount type=bind,source=FOLDER,target=..`
_MOUNT = late_pattern(r"^([^\s:=,]{1,400}):|\b(?:source|src)=([^\s,]{1,400})")
_ADDRESS = late_pattern(r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_URL = late_pattern(r"[a-z][\w+.-]{0,20}://\S+", re.IGNORECASE)
_USER_AT_HOST = late_pattern(
    r"[\w.+-]{1,64}@([\w.-]{1,253})(?::.*)?|-[A-Za-z]([\w-]{1,63}(?:\.[\w-]{1,63}){1,8})"
    r"|/dev/(?:tcp|udp)/([^/]{1,253})/.*"
)
MAX_HOST = 2_000  # characters of a word that may name a host


def file_forms(program: str, word: str) -> Iterator[str]:
    """Yield the paths that a word names, as in `a/b`, `@a/b`, `file:///a/b`, `HEAD:a/b`."""
    if word.startswith("-"):
        if program == "curl" and "@" in word:  # `-d@FILE`, `-Fname=@FILE`
            yield from file_forms("", word[word.index("@") :])
        return
    if word.startswith("file:"):
        yield file_path(word)
    elif word.startswith("@") and len(word) > 1:
        yield from file_forms(program, word[1:].partition(";")[0])
    elif program == "git" and ":" in word and "//" not in word:
        yield word.partition(":")[2]
    elif program in CONTAINERS and (found := _MOUNT.search(word)):
        yield from filter(None, found.groups())
    if _PATH_IN_WORD.fullmatch(word):
        yield word


def host_forms(word: str) -> Iterator[str]:
    """Yield the hosts that a word names: `user@host:path`, `-hHOST`, `/dev/tcp/HOST/80`."""
    may_name = word[:1] == "-" or "@" in word or word.startswith("/dev/")
    if may_name and len(word) <= MAX_HOST and (found := _USER_AT_HOST.fullmatch(word)):
        yield host_name(next(filter(None, found.groups())))
    elif "://" in word:
        yield from target_forms(word)
        yield from (form for url in _URL.findall(word) for form in target_forms(url))
    elif ":" in word and len(word) <= MAX_HOST:  # `TCP:HOST:80`, `a.com:443:HOST:443`
        yield from (host_name(part) for part in word.split(":") if _ADDRESS.fullmatch(part))


# -- the program text of an interpreter: `python -c`, `node -e`, a heredoc. It is not parsed. Its
# string literals may be files that it reads or writes, and commands if it runs any.

MAX_CODE = 20_000  # characters of a text that are read
MAX_LITERALS = 200  # of a text
INTERPRETER = late_pattern(
    r"(?P<c>python[\d.]*|pypy[\d.]*)|nodejs|tclsh|expect|julia"
    rf"|groovy|make|emacs|{'|'.join(sorted(INTERPRETERS))}",
    re.I,
)
_OPTION_C = late_pattern(r"-[a-zA-Z]{0,5}c")
_OPTION_E = late_pattern(r"-[a-zA-Z]{0,5}[erp]|-p[a-z]?|--eval|--print|--run|eval|-c")
_CODE_LITERAL = late_pattern(
    r"\"((?:\\.|[^\"\\\n]){1,500})\"|'((?:\\.|[^'\\\n]){1,500})'|`((?:\\.|[^`\\]){1,500})`"
)
_ONLY_PRINTS = late_pattern(
    r"\s*(?:print|console\.(?:log|error)|puts|echo|say)\s*\(?\s*(?:\"[^\"$`]*\"|'[^']*')[\s);]*"
)
_BETWEEN_WORDS = late_pattern(r"[\s,\[\]]*")  # between the words of `["git", "push"]`
_BETWEEN_PARTS = late_pattern(r"[\s,/()\[\]]*|\s*\)?\.joinpath\(")
_HOME = late_pattern(r"home|~|userprofile", re.I)
CODE_RUNS = late_pattern(
    r"system|exec|spawn|popen|subprocess|child_process|\brun\b|\bcall\b|check_output|shell|%x|`"
    r"|\bsh\b|passthru|\bcommand\b|^[ \t]{0,20}[!%]",
    re.I | re.M,
)
CODE_WRITES = late_pattern(
    r"writ|unlink|remove|rename|rmtree|truncate|delet|copy|move|touch|append|save|dump|chmod|mkdir"
    r"|[\"'](?:[wax]b?\+?|r\+b?)[\"']|[\"']\+?>",
    re.I,
)
_CODE_FILE = late_pattern(r"[^\s:=]{0,300}(?:/|\.[a-z]\w{0,9}$|^\.)[^\s]{0,300}", re.I)


def inline_code(program: str, rest: Sequence[str], stdin: str | None) -> str:
    """Return the program text of `python -c TEXT` or of an interpreter's input; "" without one."""
    found = INTERPRETER.fullmatch(program)
    if found is None and program.lower() in KNOWN_PROGRAMS:
        return ""
    option = _OPTION_C if found and found["c"] else _OPTION_E
    has_script = found is None or any(not word.startswith("-") for word in rest)
    texts = (text for word, text in zip(rest, rest[1:], strict=False) if option.fullmatch(word))
    code = next(texts, "" if has_script else stdin or "")[:MAX_CODE]
    return "" if _ONLY_PRINTS.fullmatch(code) else code


def commands_in(code: str) -> Iterator[str | list[str]]:
    """Yield commands in the string literals of code that may run them: "a b" or ["a", "b"]."""
    if not CODE_RUNS.search(code):
        return
    for group in _literals(code, _BETWEEN_WORDS):
        yield from (literal for literal in group if " " in literal)
        if len(group) > 1:
            yield group


def files_in(code: str) -> tuple[list[str], bool]:
    """Return the files that code names, and whether it may write or remove files.

    Adjacent literals may be joined: `Path.home() / "a" / "b"`, `join(folder, "a", "b")`.
    """
    groups = list(_literals(code, _BETWEEN_PARTS))
    joined = ["/".join(group) for group in groups]
    if _HOME.search(code):
        joined += [f"~/{path.removeprefix('~/')}" for path in joined]
    literals = (literal.lstrip("+<> ") for group in groups for literal in group)
    named = (name for name in dict.fromkeys((*literals, *joined)) if _CODE_FILE.fullmatch(name))
    return list(named), bool(CODE_WRITES.search(code))


def _literals(code: str, between: re.Pattern[str]) -> list[list[str]]:
    """Group the string literals of code: those with only `between` between them are one list."""
    groups: list[list[str]] = []
    end = -1
    for found in islice(_CODE_LITERAL.finditer(code), MAX_LITERALS):
        if not groups or not between.fullmatch(code, end, found.start()):
            groups.append([])
        groups[-1].append(found[found.lastindex or 0])
        end = found.end()
    return groups
