"""A conversation of a user with a model that has two tools."""

import json

from toolmem import AgentSession

MAIL = {"name": "send_email", "parameters": {"properties": {"to": {"type": "string"}}}}
REFUND = {"name": "refund", "parameters": {"properties": {"cents": {"type": "integer"}}}}
SARAH = {"to": "sarah@x.example"}


class Chat:
    """A user and a model, in one session."""

    def __init__(self, memory, agrees=None, conversation_id="s", **options):
        self.asked, self.agrees = [], agrees
        options = {"on_ask": None if agrees is None else self.ask, **options}
        tools = [MAIL, REFUND]
        self.session = AgentSession.start(
            memory, tools=tools, conversation_id=conversation_id, **options
        )

    def ask(self, question):
        self.asked.append(question)
        return self.agrees

    def says(self, words, *notes, lifts=None):
        """The user's turn; the model notes demands, or notes that one is taken back."""
        self.session.messages(words)
        calls = [("note_demand", each) for each in notes]
        if lifts is not None:
            calls.append(("lift_demand", {"quote": words, "lifted": lifts}))
        self.answers = [json.loads(self.session.call_tool(*call)) for call in calls]
        return self.session.after_turn([{"role": "assistant", "content": "ok"}])

    def tries(self, tool="send_email", given=SARAH):
        return self.session.check(tool, given)

    @property
    def code(self):
        """Of the first rule."""
        return self.session.rules.all_rules().rules[0].id[:6]

    @property
    def rules(self):
        return [rule.rule for rule in self.session.rules.all_rules("s").rules]
