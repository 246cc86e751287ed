"""What toolmem does not do, or not well enough, with the figures of the last measurements."""

from __future__ import annotations

import json
from typing import Any

from page_writers.benchmarks import RESULTS, figures_of, goal_of
from page_writers.markdown import page, table

_HEAD = """\
What to know before you rely on it. Figures come from `benchmarks/results/*.json`; [Benchmarks](benchmarks.md) has all
of them, and the commands that make them. Written by `python docs/generate.py`.
"""
_JUDGE = """\
## The offline judge

Without a key no model is involved. The judge is a rule-based check of the output, the recorded flag and the tool's
schema:

* Its score 1.0 means "ran and answered". **It does not know whether an answer was useful.**
* It was tuned on half of each of the recordings that it is measured on. At first sight of three lists that were
  written to mislead it, it found 0.76, 0.75 and 0.91 of the failures, and cleared 0.72, 0.83 and 0.83 of the good
  calls. Expect figures like these on outputs that are unlike the recordings.
* What it misses most is a failure that prints nothing at all; what it takes for a failure by mistake is most often
  the complaint of a program whose exit status a pipeline hides.
* How far a judge is off on your calls only labels tell: `toolmem judge label` draws calls for a person to label, and
  `toolmem judge calibrate` corrects the rate by them. A label changes no verdict. The interval takes the labels as
  drawn at random over calls; where whole conversations are labelled instead, it is too narrow.
"""
_GUIDANCE = """\
## The data-driven guidance

* It counts; it does not understand. It finds that `limit` above 10 failed, not why a page has ten entries.
* A line says what was true of these calls: that something worked next is no proof that it repaired what had failed. The
  counts beside it say how often it was seen; once is little.
* Failures and repairs are counted over every call that a summary read; examples and the rate are those of the window
  (the newest 30 judged calls unless configured otherwise).
* Whose a value is, is told by its form: `SKU-2002` after `SKU-2001` is another's and is not shown, `#W456` after `W123`
  is taken for another way to write an order's number and is.
* Only calls of the same tool are looked at: that another tool had to be called first is not told.
"""
_EMBEDDER = """\
## Search by a query

Search compares meanings with a small multilingual encoder that comes along. Of 60 queries that share no word with
the tool meant (40 tools, `benchmarks/meaning.py`) it has the right tool first in 70 of 100 in English and 87 in
Chinese, and among three in 90 and 97. What fits poorly is listed all the same and marked `relevance: low`: 13 % of the
good hits are marked as well, and 3 of 20 queries that fit nothing are not. It is blind to negation, and takes about a
second and 130 MB at the first query of a process. `embedding_model.default.backend: fastembed`
([other encoders](real-models.md#other-encoders)) finds more in English.

A store that was made with the hashing embedder goes on with it: that one finds similar wording, and no synonyms, until
`toolmem store reembed`. Guidance by a tool's name depends on neither.
"""
_RULES = """\
## Rules

**A rule that only reminds is text, not a lock.** It is put in front of the model at every turn; nothing stops a model
that does not listen. A rule that denies or asks holds where a guard stands ([below](#the-guard)).

The capture hook reads sentences by their form, without a model. On sentences that its author had not seen, in English
(en) and Chinese (zh). The sets `own`, `own b` and `written` come from three authors, one each; each author labelled the
own sentences. The half of every set that is measured here was not looked at while the capture was built, but a nearly
equal sentence of the same author may stand in the other half, so expect somewhat less on yours:
"""
_RULES_MORE = """\
The forms are few on purpose: duties ("whenever you ..., set ...") and most indirect wishes are not among them. On 52
sentences in forms that nobody looked at, 0.53 (en, 15 demands) and 0.69 (zh, 13) were found, and one of the captured
was none; of 77 standing demands in ordinary words of another author 28 were found, and 3 of 85 other messages were
taken for one. **Of demands in a form that nobody thought of, a half are missed**: a model that notes them misses fewer.
So a demand is missed now and then, and a wish is taken for a demand now and then. Look at `toolmem rules list` from
time to time; put by hand what must not be missed. Other languages are not read at all.
"""
_PASTED = """\
Telling pasted text from the user's own words is a matter of forms, not of understanding. On wordings that were
written after each repair and measured once, pasted text still got through: 37 of 70 in English and 23 of 58 in
Chinese after the first repair, 7 of 50 and 12 of 36 after the second, 4 of 30 and 5 of 28 after the third. One
author wrote forms and wordings, and used all of them to improve the forms. The forms are fewer since: of the 401
English and 319 Chinese texts of the tests at most one in fifty gets through. Expect something like one in eight
unusual wordings to get through.

* Others than that author found more: of 60 fresh pasted texts in English and 60 in Chinese 10 and 11 got through when
  first tried, and of 179 fresh demands of the user's own 19 were missed. "Re: Invoice", "According to the docs, ...",
  "Our chatbot told a user: ..." before a demand are still read as the user's own; 不要回复猎头 and "All SQL must go
  through the staging database." are still missed.
* What a user demands after a pasted text, or after a question and a blank line, is not captured: say it before,
  or in a message of its own. A message of over 100,000 characters gives no rules.
* **An instruction is taken back by forms, in English and Chinese** ("you may email Sarah again"). Of 32 sentences of
  another hand that take one back, 19 were understood when first tried (9 of 16 in English, 10 of 16 in Chinese), and
  none of 64 withdrew what was not meant; their errors were used since. What is not understood leaves the rule as it
  is: `toolmem rules reject ID`. A permission for once ("this once", "just today") is told to the user and lifts
  nothing. The words are compared, not their meaning: a rule and a sentence that name the same thing otherwise do not
  meet. A turn that takes something back and is played again in a later session takes it back again.
* "Say 'always'" works inside one `AgentSession`; the flow and `rules capture` remember nothing between
  requests.
* An amount without a tool ("above 500 euros, ask me") binds tools for payments where there are any, else the
  first tool of the turn.
* `AgentSession.messages()` asks the store each time; the event loop waits for it.
* `rules.capture: model`: the flow and sessions ask the configured model, once for each message of up to 100,000
  characters (twice where something of its reply is refused) and for 20 notes at most; `rules capture`, hooks and
  adapters do not. In a session what it notes binds from the next turn on.
* A hook (`toolmem.engine`) estimates tokens: where guidance does not fit into its budget, it may be cut at another
  sentence than in `ToolMem.prompt` on a machine with `dashscope`. A rule that a hook keeps has no vector before
  `toolmem store reembed`: `memory.recall` finds it by its words.
"""
_GUARD = """\
## The guard

It holds the calls that it is asked about: in Python those of `session.tool`, `CallRecorder(mem).tool` and
`session.check`, elsewhere those that a host asks about by `check_tool_call`; what it makes of a `deny` is the host's. A
tool that is called past them runs. What a guard on arguments cannot do, now or later:

* It sees the call, not what the call leads to: a file that is mailed by another tool, a script that an earlier call
  wrote, a Makefile's target, a redirect, an alias in the shell's own files, a link that leads elsewhere (paths are
  compared as written). Names are not resolved: an address in numbers is another host, and an address within an address
  is its text.
* Encoded text (an archive, a picture) is not decoded, but for what a shell's own line decodes and runs
  (`echo cm0gLXJm | base64 -d | sh`). A name that is spelled otherwise ("S. Connor", a nickname, dots in a mailbox's
  name, letters of another script) is another name.
* Commands are taken apart where they can be; one that runs text which only the shell knows is asked about where it
  holds a rule's literal or program, and passes where it does not (`base64 -d file | sh`). What another program's text
  does (`python -c`, `awk`, `perl -e`) is not read, and a program that does the same under another name is another
  program. `benchmarks/guard_evasions.jsonl` lists 186 ways to write a forbidden call, and the 12 that nothing stops.
* A sentence becomes a condition by its words, in English and Chinese. Where a word limits it and is not understood the
  rule stays a reminder; a demand that its grammar reads wrongly cannot be excluded. "Never mention X in an email" is
  checked on every value, the address among them.
* Somebody who had not seen the code wrote 40 sentences (24 English, 16 Chinese) for tools of their own, with 58 calls
  that they forbid and 82 near ones that they do not. At first sight 25 of the 58 were stopped and 2 of the 82: 16
  sentences only reminded (of a word that was not understood), 5 stopped a part, 3 gave no rule. `toolmem rules capture`
  shows what a sentence of yours becomes.
* A repeat is found by the exact input within one conversation. Whether a call may have changed something is read from
  declarations, programs, statements and names: a tool that is called `get_...` and writes is taken for a reader.
* Order, flow and counts (`earlier`, `more_than`) know the calls that this guard let through in this conversation
  since such a rule was kept in the store, by the end that was told of them: not what a person or another program
  ran, what was imported, and tests that ran before the demand was made. In a loop of your own an end is told by
  `after_turn`, or by a record with its `decision_id`. Success is read from a command's place (`pytest && x`, not
  `pytest; x`, `pytest | tail`, a subshell or a loop) and the call's own; tests in the background never count.
  Whether files were written is read from tools, programs and redirections: a program that is not known for reading,
  checking or talking to a service is taken to write. A call counts once for `more_than`, however often its text
  sends, and also where the host did not run it after all; nothing is counted per conversation where none is named.
  Where the store does not answer, nothing is known of earlier calls: what they would let through is stopped, and
  flow and counts stop nothing.
* What is remembered is bounded, and the oldest go: 100 tests of earlier calls in the rules of a store, 1,000 histories
  and counts, 500 failures that stand in a conversation, 1,000 conversations with such,
  1,000 working folders, 500 contexts with 1,000 names of each kind, repeats of 500 errors. What went may be
  repeated once more. Two writes within the same moment in one working folder may reset a failure once.
* While a store does not answer, a call waits 2 seconds for it and is then held against the rules that were read last:
  one that was withdrawn meanwhile still binds, a new one does not yet. A process that never read any lets calls run
  (`guard.on_error: open`) or stops them (`closed`). What was decided waits for the log, 100 decisions at most.
* Calls that change toolmem itself (its stores, every `.toolmem`, rules, trust, settings, such routes of a server, the
  files that an install wrote with the interpreter and the code that run there, an event fed to a hook by hand) are
  stopped where their text shows it; what switches hooks or the guard off (`disableAllHooks`, `TOOLMEM_GUARD=off`) is
  asked about. A settings file with our hooks in it is protected whole: an agent that is to change another key of it
  asks its user. An agent with a shell under the user's own account can do what no text shows: run a script, a Makefile
  or a program of its own, reach a file by a link that an earlier call made, start another agent without the guard, undo
  a settings file that lies in git with the rest of the tree (`git stash`), name hooks off in words that only its agent
  knows, change the environment that its agent is started in, kill the hook's process, or replace what its interpreter
  loads from elsewhere. Rules do not hang on that list: one that such a call deletes or narrows holds on from the
  journal, and one that a command lifts needs evidence of its user (the next point). What takes the hooks themselves
  away, nobody answers for: who must exclude that runs the agent under another account, or in a container without the
  store.
* That a user wants a rule to bind less is read from what can be seen: the shape of a message, the processes above a
  hook or a command, the marks that agents leave in the environment, calls under way. None of it is a wall. An agent
  with a shell under the user's account can type into a terminal that the user opened (`tmux send-keys`), have a
  process start where its own ancestors are not seen (a service, a container, a job of `cron` or `at`), feed a hook an
  event after its call has ended, or delete store, journal and receipts together. What is promised is that nothing
  loosens silently: what let a rule go is told at the next prompt, with the word that brings it back. Plain text that
  a host hands over as its user's, without its source and without any mark, counts as the user's.
* What you answer to an agent's question, and what you type where you reject a call, no hook is told: a note that quotes
  it is refused. Of a prompt the first 20,000 characters are kept for quotes, of a session the newest 500 prompts, for 7
  days; a session without a name keeps none.
* A note of a demand (`note_demand`) is as good as the model that wrote it: the memory proves that the user said its
  words, that its examples come out as it says and that it is not far wider than what was said, and no more. On 170
  labelled messages of one author with the notes of one large model 138 of 150 forbidden calls were stopped, and 3 of
  219 near ones; without any model 28 of the 77 standing demands were kept, and 3 of 85 other messages, and no forbidden
  call was stopped (`python benchmarks/demands.py`). The notes were written one message at a time: what a busy agent
  thirty turns later notes, and what other models note, was not measured. A demand whose note has no word in common
  with the user's own is asked about, in its session alone.
* A class of tools (`@shell`, `@write`, ...) is known by what an agent's file says, by names that agents are known to
  use, by declared parameters, and by the names of a call's arguments. A tool that tells none of these is of no class;
  a shell that is sent its lines piece by piece (keys typed into a terminal) is not read as commands. A sentence is
  kept for a class only by hooks and adapters; what is put for one tool by name binds it alone.
* Adapters of agent frameworks see the tools that the framework runs in Python: not those that a model's provider runs,
  not what a program of smolagents' CodeAgent does itself, not MCP tools of the OpenAI Agents SDK. Advice on a result
  that is no text is in the log of decisions alone where the framework has no place beside a result. A framework that
  tries a call again by itself is stopped as an agent is, unless the error is one that passes (a timeout, a rate
  limit). Demands for one session are known to the process alone, and what another agent says to a framework's agent
  counts as the user's unless `capture=False` is given.
* A call counts as denied by the first words of its output alone (`toolmem: not run`, or `toolmem: kept.` of a note,
  with what hosts write around it). A tool whose output begins so, a page that it fetched for instance, makes that one
  call count nowhere: a failure that says so is no failure in figures and guidance. Outputs that quote the words
  further inside are outputs like any other.
* A function is held by what it is given: what it reads elsewhere (a global, an environment variable, an attribute of
  its object) is not seen. A call that was interrupted teaches the guard nothing. What a plain tool waits for in the
  thread of a running event loop (the store, an answer of `on_ask`) that loop waits for as well.
* A demand of the message being answered binds its calls only where it names a tool of the session's catalogue.
* An added call is learned from where it names its conversation (`conversation_id`), after it is kept: at most the
  1,000 conversations that were changed last are known, and a decision waits at most two seconds for a store.
* Names are known of SQL statements and of a shell's absolute paths and programs; a relative path hangs on a folder that
  the call does not tell, and any command that may have written wipes what is known of paths.
* What it names as wrong in a replay is by the recorded flag. A replay cannot say what an agent would have done instead.
"""
_HOOKS = """\
## In an agent's path

What no hook of an agent can do stands on [its page](how-to/hosts/index.md). Of hooks in all of them:

* **A hook that is not run holds nothing.** Most agents let a call run whose hook cannot start or takes too long;
  `toolmem hook doctor` compares receipts with the agent's recordings, afterwards.
* A hook is a process of Python. Where its modules have no compiled files and none can be written (installed without
  them into folders that are not writable, `PYTHONDONTWRITEBYTECODE`), each takes some 0.2 s more: run
  `python -m compileall` once over the packages of that environment.
* **Gemini CLI and Copilot** tell their hooks no id of a call: what ended is known by its tool and arguments, so that of
  two calls that are alike and run at once one may be taken for the other.
* **OpenCode and Cline** have plugins in place of hooks. Ours start toolmem for each event, as a hook does, and do not
  speak to `toolmem serve`: over HTTP any program of this machine could say that the user spoke. Cline ends a run whose
  plugin takes more than three seconds; ours lets the call run after two and a half.
* **Cursor and Goose** were read from their documentation; nothing of them was seen in the program.
* A hook reads no configuration: rules and repeats are enforced, names and schemas advise, the caps of the prompt are
  its own (some 9,000 characters, because agents cut what is longer).
* Where project and user both have a store, a newer instruction replaces older ones of the project's alone. The user's
  own holds beside it until it is taken back ("you may ... again"), which is read for both.
* Demands for one session end where the agent begins another: a fork, `/clear`. A demand that cannot be checked
  reminds.
* An agent whose events name no calls cannot say whether two of one moment that are alike are one: the second is
  answered as the first, and its receipt counts once.
* Of each text that a call was given or answered the first 200,000 characters are kept. A message over 100,000
  characters is not read for demands; a payload over 64 MB is not read at all, and its call runs (with
  `--on-error closed` it does not).
* What its user types and what a program puts into the same field is told apart by the envelopes that agents are known
  to write. A machine's prompt without one, in an agent that does not say who sent it, is read as the user's.
* `make test-hosts` runs the programs with a model that follows a script, on Linux, without their sandboxes, and mostly
  without a terminal: what a real model makes of a reason, and their own screens (but for Claude Code's question before
  a call), nobody has tried there.
* `doctor` compares the agent's recordings of its three newest sessions in the working directory, from the install on;
  an agent whose recordings are in no file that is read line by line is compared with nothing, and `doctor` says so.
* A session whose end no agent told is caught up with a day later; calls older than a week are not.
* An install is undone to the byte while nobody changed the file since. Where somebody did, our entries are taken out
  and what stood beside them stays, but an object or a list that was empty before may be gone, or be written as `{}`.
* A settings file that is a hard link becomes a file of its own; its times and extended attributes are new ones.
* Where toolmem is found through `PYTHONPATH` alone, the installed line has no `-E`, and of a `PYTHONPATH` that names
  the working directory modules are imported.
* **The [MCP proxy](how-to/hosts/mcp-proxy.md)** holds the calls of the server behind it, and no other. It hears no
  user: a message of theirs resets no repeats there, and what was said for one session alone binds in hooks only. A
  message of the client of more than 64 MiB does not pass; an answer of more passes unread, and its call is kept as
  one without an answer. Texts of more than 200,000 characters are cut in what is kept. What the store does not take
  while it is away is not recorded later. Descriptions of tools change only when the server says that its list did, or
  with a new process: a rule that was put since is enforced at once, and read by the model later.
"""
_UNTRUSTED = """\
## Text from tools, secrets, folders

* What a call brought in is plain, one line at a time, and said to be data; that a model obeys nothing in it
  cannot be promised. Two names of one other script that look alike, and look-alikes inside ASCII (`l`, `I`,
  `1`), are shown as they are written.
* Secrets are found by names and forms, not by entropy: a token of an unknown form without a telling name before
  it (`login("bob", "hunter2!")`, `.netrc`, `echo x | sudo -S`) is stored as it is. Cards, PINs and personal
  data are not secrets in this sense. Rules and notes are kept as they were said, and the model that judges is
  sent the call as it is. What was stored before, or with `secrets.mask: false`, stays as it is. The mark has
  six characters: who has the store's file, with its key, can test a guess.
* A call of a session is stored first and judged afterwards; a later process judges the masked one.
* A store is known by path, id and inode: a backup that is copied over it counts as found; trust it again or
  name it. Who may write into a trusted `.toolmem` can change it: what is inside is not signed. What an
  untrusted store holds is still read, as data, by the model that judges or summarizes.
* Secrets in columns (CSV, tables, `INSERT ... VALUES`), on the line below their name, or in an argument of their own
  (`["mysql", "-phunter2"]`) are stored as they are; so are tokens in names of tools and ids of calls, which identify
  things. Of 78 secrets that an attacker put into 54 places, 12 are stored.
* `TOOLMEM_TOKEN` in `.env` is accepted as the service's token.
* Guidance names a repair only for calls about the same thing, which is a rule over values, and tells a user's
  value by the parameter's name and the value's form: a parameter `x` that holds names of people is not known as
  one. A model's own text is not bound by these rules; the counted claims beside it are.
"""
_SERVICE = """\
## The service

* A body of 8 MB made of a few hundred thousand small objects takes about three seconds of CPU, and other
  requests are answered slowly meanwhile, because Python's threads share one lock.
* MCP over HTTP: the SDK parses bodies in the event loop (bounded by `http.max_body_bytes`).
* Without the package `dashscope` tokens are estimated: sums over ordinary text within 10 %, base64 or Cyrillic off by
  up to a factor of three.
* `/docs` behind a token: a browser cannot send the header by itself.
* A store of one's own takes some 150 lines of Python on `DecidedStore`; `reembed`, which must not miss what is written
  meanwhile, each store does in its own way. A chat model of one's own is neither paced nor retried by toolmem.
* Run on Linux alone, with Python 3.11 and 3.13. On macOS and Windows nothing was run; tests take away from Python what
  is on POSIX alone and use the embedded store, a session and the command line. On Windows `http.workers` above 1 is not
  expected to work, and files are not closed to other users by their mode.
* Under several workers, budget, pacing and `limit_concurrency` count per worker.
"""
_STORE = """\
## The store

* SQLite takes one writer at a time; other processes wait their turn. It is meant for one machine and a local disk,
  not for a network file system.
* Search compares the query with every vector. Its cost grows with the number of tools; everything else does not.
* Rules and calls of one workspace can be read by everybody who can read the file: workspaces keep memories apart,
  they are not a protection.
* The log of calls holds the newest 100,000 of a workspace (`log.max_calls`), and those that a window keeps beside
  them: calls of 700 bytes take some 90 MB on the disk. A batch of calls is logged tool by tool; in a conversation
  their times tell the order.
* After a fork the store has to be opened again.
* A process that is killed loses the bookings of its last fifth of a second in the ledger, never a call.
"""
_POLICIES = """\
## The policies of the summary

* What guidance names is measured by its claims, not by reading its sentences. A model's own sentences name
  nothing here.
* **They were measured on guidance of the offline writer**, not of a model. What a policy costs is counted on the true
  prompts; what it buys (the share of later repairs that the guidance names) is that writer's.
* Most of the recordings are public ones that are not in this repository (`intercode`, `tau_bench`, `toolbench`); with
  the repository alone you can repeat the rows of the project's own `sample`.
* `incremental` names fewer repairs than smart skip at the same number of new calls on `intercode` (undecided by the
  margin) and on the project's own sample; the other recordings are too small to tell.
* Counting errors and repairs alone, which costs nothing, is not shown to be worse on the small recordings.
* Guidance under a policy that waits does not know the calls that wait. Those that leave the kept calls (100 by default)
  before a summary reads them are never read.

Repairs named, and the paired difference to smart skip with ten new calls (95 % interval, verdict at a margin of 0.02):
"""
_MODELS = """\
## Models

**No figure on this page was made with a paid model.** Prompts are counted with Qwen's tokenizer and priced by a
table of list prices with the day on which they were read. Not measured:

* how often a paid judge is right about usefulness (`toolmem judge compare` measures it on your calls);
* how much better guidance by a model is than counted guidance, and how much an agent gains from either,
  end to end, beyond one trial before there was a card (README); `python -m examples.office` measures it on yours;
* the real services' speed, rate limits and failures, beyond a loopback server that imitates them.
"""


def limits() -> str:
    parts = [_HEAD, _JUDGE, _GUIDANCE, _EMBEDDER, _RULES, _unseen_instructions(), _RULES_MORE, _PASTED, _GUARD, _HOOKS]
    parts += [_UNTRUSTED, _STORE, _SERVICE]
    parts += [_POLICIES, _policies(), _MODELS]
    return page("Limits", *parts, "## Goals that were not met", _missed())


def _policies() -> str:
    """Of each recording: what the policies lost or gained beside the smart skip."""
    body = json.loads((RESULTS / "summarization_cost.json").read_text(encoding="utf-8"))
    rows = []
    for recording in body["recordings"]:
        if not recording["repaired"]:
            continue
        found = {row["policy"]: row for row in recording["policies"]}
        for name in ("counting only", "incremental, 10 new calls"):
            beside = found[name]["than_smart_skip_10"]
            interval = f"{beside['difference']:+.2f} ({beside['low']:+.2f} to {beside['high']:+.2f})"
            coverage = f"{found[name]['coverage']:.2f}"
            rows.append((recording["recording"], name, coverage, interval, beside["verdict"]))
    return table(["recording", "policy", "repairs named", "beside smart skip", "verdict"], rows)


def _unseen_instructions() -> str:
    rows = []
    for row in json.loads((RESULTS / "instructions.json").read_text(encoding="utf-8")):
        if row["detector"] == "ours" and row["set"].endswith("unseen"):
            numbers = [f"{row[name]:.2f}" for name in ("precision", "recall", "right_tools", "session_caught")]
            rows.append((row["set"].removesuffix(" unseen"), row["language"], str(row["sentences"]), *numbers))
    columns = ["set", "language", "sentences", "precision", "recall", "right tools", "session demands seen"]
    return table(columns, rows)


def _missed() -> str:
    rows: list[tuple[str, str, str, str]] = []
    for path in sorted(RESULTS.glob("*.json")):
        body = json.loads(path.read_text(encoding="utf-8"))
        rows += [
            (f"`benchmarks/{path.stem}.py`", figure["question"], _value(figure), goal_of(figure))
            for figure in figures_of(body)
            if figure["met"] == "NO"
        ]
    if not rows:
        return "None of the stated goals was missed in the last measurements."
    note = "Seconds were measured on a shared machine with two cores."
    return table(["measured by", "question", "value", "goal"], rows) + "\n\n" + note


def _value(figure: dict[str, Any]) -> str:
    return f"{figure['value']:.4g} {figure.get('unit', '')}"
