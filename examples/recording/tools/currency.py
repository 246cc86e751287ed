"""`convert_currency`: amounts at the rates of a banking day. The rates are made up."""

from __future__ import annotations

import re
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from examples.recording.clock import ScriptedClock
from examples.recording.tools.tool import Answer, Arguments, Tool, done, failure, object_schema, to_json

# Units of one euro, in made-up but plausible numbers.
RATES = {"EUR": "1", "USD": "1.08", "GBP": "0.85", "NOK": "11.6", "CHF": "0.95", "CNY": "7.82", "JPY": "163"}


class ConvertCurrency(Tool):
    name = "convert_currency"
    description = "Convert an amount between currencies at the reference rate of a banking day (Monday to Friday)."
    parameters = object_schema(
        ("amount", "from_currency", "to_currency"),
        amount={"type": "number", "minimum": 0.01, "maximum": 10000000},
        from_currency={"type": "string", "enum": list(RATES), "description": "ISO 4217 code."},
        to_currency={"type": "string", "enum": list(RATES), "description": "ISO 4217 code."},
        rate_date={"type": "string", "description": "YYYY-MM-DD; the newest rate where it is left out."},
    )

    def __init__(self, clock: ScriptedClock, outage_days: frozenset[date]) -> None:
        self._clock = clock
        self._outage_days = outage_days

    def run(self, arguments: Arguments) -> Answer:
        today = self._clock.now().date()
        if today in self._outage_days:
            return failure("Error: rate provider unavailable (503), try again later", fault="server_error")
        day = arguments.get("rate_date")
        if day is not None:
            if re.fullmatch(r"\d{4}-\d{2}-\d{2}", day) is None:
                return failure(f"Error: rate_date '{day}' is not of the form YYYY-MM-DD")
            asked = date.fromisoformat(day)
            if asked > today:
                return failure(f"Error: no rate for {day}: it is in the future")
            if asked.weekday() > 4:
                return failure(f"Error: no rate for {day}: not a banking day")
        source, target = arguments["from_currency"], arguments["to_currency"]
        rate = Decimal(RATES[target]) / Decimal(RATES[source])
        result = (Decimal(str(arguments["amount"])) * rate).quantize(Decimal("0.01"), ROUND_HALF_UP)
        return done(to_json({"result": float(result), "currency": target, "rate": float(round(rate, 6))}))
