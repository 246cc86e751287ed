"""An agent as a process of its own: it starts its hooks, and its shell, as Claude Code does. One JSON line for each."""

import json
import os
import socket
import subprocess
import sys

HOOK = [sys.executable, "-P", "-m", "toolmem.hosts", "claude-code"]
MARKS = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}  # of what it starts


class Agent:
    def __init__(self, session: str, project: str, entrypoint: str = "cli") -> None:
        self.place = {"session_id": session, "cwd": project}
        marks = {**MARKS, "CLAUDE_CODE_ENTRYPOINT": entrypoint}
        self.environment = {**os.environ, **marks, "CLAUDE_PROJECT_DIR": project}
        self.number = 0

    def tell(self, event: str, **payload: object) -> dict[str, object]:
        self.number += 1
        given = {"hook_event_name": event, "prompt_id": f"p{self.number}", **self.place, **payload}
        own, its = socket.socketpair()  # as seen in 2.1.197 and 2.1.330
        with own, its:
            run = subprocess.Popen(HOOK, stdin=its.fileno(), env=self.environment, stdout=subprocess.PIPE)
            its.close()
            own.sendall(json.dumps(given).encode())
            own.shutdown(socket.SHUT_WR)
            said, _ = run.communicate()
        return dict(json.loads(said)) if said else {}

    def shell(self, command: str, *, told: bool = True, marked: bool = True) -> dict[str, object]:
        """A call of its shell; `told`: with its events. `marked`: with the marks of an agent in its environment."""
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"toolu_{self.number}"}
        answer = self.tell("PreToolUse", **call) if told else {}
        if "deny" in json.dumps(answer):
            return {"code": -1, "out": "denied", "err": json.dumps(answer)}
        environment = self.environment if marked else {k: v for k, v in self.environment.items() if k not in MARKS}
        ran = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, stdin=subprocess.DEVNULL)
        done = {"code": ran.returncode, "out": ran.stdout.decode(), "err": ran.stderr.decode()}
        if told:
            self.tell("PostToolUse", **call, tool_response={"stdout": done["out"], "stderr": done["err"]})
        return done


def main() -> None:
    agent = Agent(*sys.argv[1:4])
    for line in sys.stdin:
        asked = json.loads(line)
        done = agent.tell(**asked["tell"]) if "tell" in asked else agent.shell(**asked["shell"])
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
