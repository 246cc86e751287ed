"""Work in the scratch folder: logs, tables, notes; with the paths, options and programs that agents get wrong."""

from __future__ import annotations

from examples.recording.agents import Slip, Step, Story, Talk

_MONTHS = ("2025_12", "2026_01", "2026_02")
_ALL_FILES = Step("shell", {"command": "find . -type f | sort"})


def _command(line: str) -> dict[str, str]:
    return {"command": line}


def count_in_log(talk: Talk) -> Story:
    word, log = talk.pick(("ERROR", "WARN", "timed out", "printer", "FATAL")), talk.pick(("app", "worker"))
    talk.ask(f"How often does '{word}' appear in the {log} log?", f"{log} 日志里 '{word}' 出现了多少次？")
    if word == "FATAL":
        # grep finds nothing and says so by its exit code: the flag is down, yet nothing went wrong.
        yield Step("shell", _command(f"grep -n FATAL logs/{log}.log"), failed=False, useful=True)
        return
    yield from talk.attempt(
        "shell",
        _command(f"grep -c '{word}' logs/{log}.log"),
        (
            Slip(
                "wrong_path", _command(f"grep -c '{word}' log/{log}.log"), (Step("shell", _command("ls -R logs")),), 2
            ),
            Slip("program_not_installed", _command(f"rg -c '{word}' logs/{log}.log"), weight=2),
            Slip("bad_option", _command(f"grep --count-only '{word}' logs/{log}.log")),
            Slip("unbalanced_quote", _command(f"grep -c '{word} logs/{log}.log")),
            Slip("wrong_parameter_name", {"cmd": f"grep -c '{word}' logs/{log}.log"}),
        ),
        risk=1.1,
    )
    if talk.chance(0.4):
        yield from talk.attempt("shell", _command(f"grep '{word}' logs/{log}.log | tail -n {talk.pick((3, 5, 20))}"))


def sum_of_sales(talk: Talk) -> Story:
    month, category = talk.pick(_MONTHS), talk.pick(("tents", "boots"))
    talk.ask(
        f"Add up the revenue of {category} in sales_{month}.csv.", f"把 sales_{month}.csv 里 {category} 的收入加起来。"
    )
    line = f"grep ',{category},' data/sales_{month}.csv | cut -d, -f5 | awk '{{s += $1}} END {{print s}}'"
    yield from talk.attempt(
        "shell",
        _command(line),
        (
            # The pipe ends with awk, whose exit code is 0: only the message tells.
            Slip("wrong_path", _command(line.replace("data/sales", "sales")), (_ALL_FILES,), 2, failed=True),
            Slip("program_not_installed", _command(f"python3 -c \"import pandas; print('{category}')\""), weight=1.5),
            Slip("program_not_installed", _command(f"csvstat -c revenue data/sales_{month}.csv")),
            Slip("unbalanced_quote", _command(line.replace("print s}'", "print s}"))),
            Slip("outside_of_folder", _command(line.replace("data/", "/data/")), (Step("shell", _command("ls data")),)),
        ),
    )


def read_handbook(talk: Talk) -> Story:
    topic = talk.pick(("travel", "expenses", "onboarding", "security"))
    talk.ask(f"What does the handbook say about {topic}?", f"员工手册里关于 {topic} 是怎么写的？")
    path = f"docs/handbook/{topic}.md"
    look = Step("shell", _command(talk.pick(("ls docs/handbook", "find docs -name '*.md' | sort"))))
    yield from talk.attempt(
        "read_file",
        {"path": path},
        (
            Slip("wrong_path", {"path": f"handbook/{topic}.md"}, (look,), 2),
            Slip("wrong_path", {"path": f"docs/handbook/{topic}.txt"}, (look,)),
            Slip("folder_for_file", {"path": "docs/handbook"}, (look,)),
            Slip("wrong_parameter_name", {talk.pick(("filename", "file_path")): path}, weight=2),
            Slip("outside_of_folder", {"path": f"/home/assistant/{path}"}),
        ),
        risk=1.1,
    )


def read_some_lines(talk: Talk) -> Story:
    first = talk.pick((1, 20, 40, 60))
    talk.ask("Read me a part of the release notes.", "读一段发布说明给我听。")
    right = {"path": "docs/release_notes.md", "start_line": first, "end_line": first + talk.pick((5, 15, 30))}
    yield from talk.attempt(
        "read_file",
        right,
        (
            Slip("out_of_range", {**right, "start_line": 0}),
            Slip("wrong_type", {**right, "start_line": str(first)}),
            Slip("out_of_range", {"path": "docs/release_notes.md", "start_line": 900}, weight=0.8),
            Slip("wrong_parameter_name", {"path": "docs/release_notes.md", "offset": first, "limit": 20}),
        ),
    )


def read_whole(talk: Talk) -> Story:
    path = talk.pick(
        ("docs/会议纪要.md", "logs/app.log", "data/sales_2026_02.csv", "data/config.json", "docs/release_notes.md")
    )
    talk.ask(f"Open {path} for me.", f"帮我打开 {path}。")
    tool = talk.pick(("read_file", "read_file", "shell"))
    right = {"path": path} if tool == "read_file" else _command(f"cat {path}")
    wrong = path.replace("docs/", "doc/").replace("logs/", "log/").replace("data/", "")
    slip = Slip("wrong_path", {"path": wrong} if tool == "read_file" else _command(f"cat {wrong}"), (_ALL_FILES,))
    yield from talk.attempt(tool, right, (slip,))


def read_binary(talk: Talk) -> Story:
    path = talk.pick(("images/logo.png", "reports/q4_2025.pdf"))
    talk.ask(f"What is in {path}?", f"{path} 里是什么内容？")
    step = Step("read_file", {"path": path}, "binary_file")
    yield step
    if talk.chance(talk.agent.stubbornness * 2):
        yield step
    yield Step("shell", _command(f"wc -c {path}"))


def write_note(talk: Talk) -> Story:
    number = talk.world.facts["notes"] = talk.world.facts.get("notes", 0) + 1
    path = f"reports/note_{number:02d}.md"
    talk.ask("Write down what we agreed on.", "把我们商定的内容记下来。")
    english = f"# Note {number}\n\n- tents: price stays\n- next review on Monday\n"
    content = f"# 备忘 {number}\n\n- 帐篷：价格不变\n- 下周一复查\n" if talk.agent.language == "zh" else english
    yield from talk.attempt(
        "write_file",
        {"path": path, "content": content},
        (
            Slip(
                "wrong_path",
                {"path": f"notes/{number:02d}.md", "content": content},
                (Step("shell", _command("ls")),),
                1.5,
            ),
            Slip("file_exists", {"path": "reports/q3_2025.txt", "content": content}),
            Slip("missing_parameter", {"path": path}),
            Slip("not_in_enum", {"path": path, "content": content, "mode": talk.pick(("w", "write"))}),
        ),
        risk=0.5,
    )
    if talk.chance(0.35):
        yield from talk.attempt("write_file", {"path": path, "content": "- done\n", "mode": "append"})


def follow_log(talk: Talk) -> Story:
    talk.ask("Watch the app log for me.", "帮我盯着 app 日志。")
    line = talk.pick(("tail -f logs/app.log", "tail -f logs/worker.log", "sleep 60 && tail logs/app.log"))
    step = Step("shell", {"command": line, "timeout_seconds": 0.1}, "blocking_command")
    answer = yield step
    if answer.failed and talk.chance(talk.agent.stubbornness):
        yield step
    yield Step("shell", _command(f"tail -n {talk.pick((5, 10))} logs/app.log"))


def value_of_config(talk: Talk) -> Story:
    name = talk.pick(("currency", "retries", "port"))
    talk.ask(f"Which {name} is set in the configuration?", f"配置里的 {name} 是多少？")
    yield from talk.attempt(
        "shell",
        _command(f"grep '\"{name}\"' data/config.json"),
        (
            Slip("program_not_installed", _command(f"jq .{name} data/config.json"), weight=3),
            Slip("wrong_path", _command(f"grep '\"{name}\"' config.json"), (_ALL_FILES,)),
            Slip("outside_of_folder", _command(f"grep {name} ../config.json")),
        ),
        risk=1.3,
    )


def copy_report(talk: Talk) -> Story:
    quarter = talk.pick(("q3", "q4"))
    talk.ask(f"Put a copy of the {quarter} report into the archive.", f"把 {quarter} 的报告复制到 archive。")
    yield from talk.attempt(
        "shell",
        _command(f"cp reports/{quarter}_2025.txt archive/"),
        (
            Slip(
                "wrong_path",
                _command(f"cp reports/{quarter}.txt archive/"),
                (Step("shell", _command("ls reports")),),
                2,
            ),
            Slip("folder_for_file", _command("cp reports archive/")),
            Slip("program_not_installed", _command(f"rsync reports/{quarter}_2025.txt archive/")),
        ),
    )
    if talk.chance(0.5):
        yield Step("shell", _command("ls archive"))


def compare_months(talk: Talk) -> Story:
    one, other = talk.rng.sample(_MONTHS, 2)
    talk.ask("How do the two months differ? First lines are enough.", "这两个月有什么不同？看前几行就够了。")
    yield from talk.attempt(
        "shell",
        _command(f"diff data/sales_{one}.csv data/sales_{other}.csv | head -n 12"),
        (
            Slip("wrong_path", _command(f"diff sales_{one}.csv sales_{other}.csv"), (_ALL_FILES,)),
            Slip("bad_option", _command(f"diff --sorted data/sales_{one}.csv data/sales_{other}.csv")),
        ),
    )
