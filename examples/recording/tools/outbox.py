"""`send_email`: messages are really written as .eml files into an outbox folder; nothing leaves the machine."""

from __future__ import annotations

import re
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path

from examples.recording.clock import ScriptedClock
from examples.recording.tools.tool import Answer, Arguments, Tool, done, failure, object_schema, to_json

DOMAIN = "example.com"
MAILBOXES = (
    *("mira.solberg", "tomas.keller", "ines.moura", "jonas.brandt", "lea.vidal", "pavel.novak"),
    *("nora.hagen", "silvio.ricci", "anouk.claes", "erik.lund", "wei.zhou", "lan.lin"),
)
MAX_RECIPIENTS = 5
_ADDRESS = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


class SendEmail(Tool):
    name = "send_email"
    description = "Send a mail, with files of the working folder attached. At most 5 recipients."
    parameters = object_schema(
        ("to", "subject", "body"),
        to={"type": "array", "items": {"type": "string"}, "description": "1 to 5 full addresses."},
        subject={"type": "string"},
        body={"type": "string"},
        attachments={
            "type": "array",
            "items": {"type": "string"},
            "description": "Paths relative to the working folder.",
        },
    )

    def __init__(self, folder: Path, outbox: Path, clock: ScriptedClock) -> None:
        self._folder = folder
        self._outbox = outbox
        self._clock = clock
        self._sent = 0

    def run(self, arguments: Arguments) -> Answer:
        to = arguments["to"]
        for address in to:
            if _ADDRESS.fullmatch(address) is None:
                return failure(f"SMTPRecipientsRefused: 553 5.1.3 '{address}' is not a valid address")
        if not to:
            return failure("SMTPException: no recipient given")
        if len(to) > MAX_RECIPIENTS:
            return failure(f"SMTPException: 452 4.5.3 too many recipients ({len(to)}), the limit is {MAX_RECIPIENTS}")
        if not arguments["subject"].strip():
            return failure("Error: the subject is empty")
        message = self._message(arguments)
        for path in arguments.get("attachments", []):
            file = (self._folder / path).resolve()
            if not file.is_relative_to(self._folder.resolve()) or not file.is_file():
                return failure(f"AttachmentError: file '{path}' does not exist; nothing was sent")
            message.add_attachment(
                file.read_bytes(), maintype="application", subtype="octet-stream", filename=file.name
            )
        self._sent += 1
        name = f"{self._sent:04d}.eml"
        (self._outbox / name).write_bytes(message.as_bytes())
        unknown = [a for a in to if a.partition("@")[2] != DOMAIN or a.partition("@")[0] not in MAILBOXES]
        if unknown:
            # Taken by the queue, so no error of the tool; the bounce tells that it never arrived.
            bounce = {
                "status": "bounced",
                "message_id": name,
                "reason": f"550 5.1.1 user unknown: {', '.join(unknown)}",
            }
            return failure(to_json(bounce), success=True)
        return done(to_json({"status": "sent", "message_id": name, "recipients": len(to), "bytes": _size(message)}))

    def _message(self, arguments: Arguments) -> EmailMessage:
        message = EmailMessage()
        message["From"] = f"assistant@{DOMAIN}"
        message["To"] = ", ".join(arguments["to"])
        message["Subject"] = arguments["subject"]
        message["Date"] = format_datetime(self._clock.now())
        message.set_content(arguments["body"])
        return message


def _size(message: EmailMessage) -> int:
    """Bytes of text and attachments, without headers: MIME boundaries are random."""
    return sum(len(part.get_payload(decode=True) or b"") for part in message.walk() if not part.is_multipart())
