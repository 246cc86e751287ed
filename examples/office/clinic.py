"""The clinic: eight tools whose conventions stand in no schema, and the state that calls leave behind.

Conventions are met by error messages, and a few by answers that are worth nothing: an empty list, a total of 0.
Patients, drugs and figures are made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

TODAY = date(2026, 11, 30)

# number -> owner, name, species, insurer ("": none)
PATIENTS: dict[str, tuple[str, str, str, str]] = {
    "V204": ("NYBERG", "MILO", "CAT", "AGR"),
    "V211": ("OKAFOR", "BRUNO", "DOG", "FOL"),
    "V218": ("TANAKA", "PIP", "BIRD", ""),
    "V225": ("LINDQVIST", "SALLY", "DOG", "SVE"),
    "V232": ("MARCHETTI", "GIGI", "CAT", ""),
    "V239": ("OKAFOR", "NALA", "CAT", "FOL"),
    "V246": ("DUBOIS", "COCO", "BIRD", "AGR"),
    "V253": ("HEIKKILA", "REX", "DOG", ""),
    "V260": ("ROSSI", "LUNA", "CAT", "SVE"),
    "V267": ("TANAKA", "KURO", "DOG", "AGR"),
}
# number -> name, letters of the species it is for, forms it comes in
DRUGS: dict[str, tuple[str, str, str]] = {
    "DX118": ("amoxidal", "FK", "TS"),
    "DX124": ("amoxidal mite", "B", "S"),
    "DX131": ("carpofen", "K", "T"),
    "DX137": ("melovet", "FK", "TS"),
    "DX142": ("praziban", "FKB", "T"),
    "DX155": ("doxilin", "FB", "S"),
}
CABINETS = ("NORTH", "COLD", "VAN")
ROOMS = ("EXAM", "SURG", "XRAY")
TARIFFS = ("CON", "VAC", "XRY", "SUR", "LAB")
PAYERS = ("OWN", "AGR", "FOL", "SVE")
KINDS = ("SVC", "DRG", "LAB")


class ToolRefused(Exception):
    """What a tool answers in place of a result."""


def stock(drug: str, form: str, cabinet: str) -> int:
    """Packs that are there; made up, always alike."""
    return sum(map(ord, drug + form + cabinet)) * 13 % 90


def takings_of(quarter: int, year: int, kind: str, room: str = "") -> int:
    """Crowns that were taken; made up, always alike."""
    return (year * 37 + quarter * 411 + sum(map(ord, kind)) * 53 + sum(map(ord, room)) * 29) % 9000 + 700


def day_code(day: date) -> str:
    """As the clinic writes days: two digits of the year, three of the day in it."""
    return f"{day:%y%j}"


@dataclass
class Clinic:
    """One clinic, as it stands before a task. Each tool is a method of its own name."""

    visits: dict[str, tuple[str, str, date, str, int]] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    doses: list[tuple[str, str, int]] = field(default_factory=list)
    bills: list[tuple[str, str, str]] = field(default_factory=list)

    def call(self, tool: str, arguments: Any) -> tuple[str, bool]:
        """(output, whether it worked) of one call, whatever is sent."""
        schema = next((each["parameters"] for each in TOOLS if each["name"] == tool), None)
        if schema is None:
            return f"no tool {tool!r}", False
        problem = _misfit(schema, arguments)
        if problem:
            return problem, False
        try:
            return json.dumps(getattr(self, tool)(**arguments), ensure_ascii=False), True
        except ToolRefused as refused:
            return str(refused), False

    def state(self) -> list[tuple[str, ...]]:
        """What calls have left behind, in an order that does not depend on theirs."""
        left: list[tuple[str, ...]] = [
            ("visit", patient, room, str(day), at, str(long)) for patient, room, day, at, long in self.visits.values()
        ]
        left += [("weight", patient, str(grams)) for patient, grams in self.weights.items()]
        left += [("dose", self._patient_of(visit), drug, str(dose)) for visit, drug, dose in self.doses]
        left += [("bill", self._patient_of(visit), lines, payer) for visit, lines, payer in self.bills]
        return sorted(left)

    def find_patient(self, query: str) -> dict[str, Any]:
        key, sign, value = query.strip().partition("=")
        if not sign:
            raise ToolRefused("C11 query: key=value")
        if key not in ("owner", "animal", "species"):
            raise ToolRefused(f"C12 no key {key}; keys: owner, animal, species")
        place = ("owner", "animal", "species").index(key)
        found = [number for number, patient in PATIENTS.items() if patient[place] == value]  # the file is in capitals
        fields = ("owner", "animal", "species", "insurer")
        return {"patients": [{"number": each, **dict(zip(fields, PATIENTS[each], strict=True))} for each in found]}

    def find_drug(self, term: str, species: str = "") -> dict[str, Any]:
        if species not in ("F", "K", "B"):
            raise ToolRefused("C22 species letter: F, K, B (feline, canine, bird)")
        found = {number: drug for number, drug in DRUGS.items() if drug[0].startswith(term) and species in drug[1]}
        return {
            "drugs": [
                {"drug": number, "name": name, "forms": list(forms)} for number, (name, _, forms) in found.items()
            ]
        }

    def drug_stock(self, drug: str, cabinet: str) -> dict[str, Any]:
        if cabinet not in CABINETS:
            raise ToolRefused(f"C32 no cabinet {cabinet}; cabinets: {', '.join(CABINETS)}")
        number, form = _drug(drug)
        return {"drug": drug, "cabinet": cabinet, "packs": stock(number, form, cabinet)}

    def book_visit(self, patient: str, room: str, day: str, start: str, minutes: int = 30) -> dict[str, Any]:
        _known_patient(patient)
        if room not in ROOMS:
            raise ToolRefused(f"C42 no room {room}; rooms: {', '.join(ROOMS)}")
        when = _day(day)
        if room == "SURG" and when.isoweekday() == 3:
            raise ToolRefused("C45 SURG is cleaned on Wednesdays")
        if not re.fullmatch(r"(0[89]|1[0-7])(00|20|40)", start, re.ASCII):
            raise ToolRefused("C46 start: hhmm, every 20 minutes from 0800 to 1740")
        if minutes not in (20, 40, 60):
            raise ToolRefused(f"C47 {minutes} minutes are not offered")
        number = f"N{501 + len(self.visits)}"
        self.visits[number] = (patient, room, when, start, minutes)
        return {"visit": number, "room": room, "day": day, "start": start, "minutes": minutes}

    def record_weight(self, patient: str, weight: float) -> dict[str, Any]:
        _known_patient(patient)
        if weight != int(weight) or not 20 <= weight <= 90_000:
            raise ToolRefused("C51 weight implausible (grams)")
        self.weights[patient] = int(weight)
        return {"patient": patient, "weight": int(weight)}

    def dispense(self, visit: str, drug: str, dose: float) -> dict[str, Any]:
        self._known_visit(visit)
        _drug(drug)
        if self._patient_of(visit) not in self.weights:
            raise ToolRefused("C62 no weight of the patient on file today")
        if dose != int(dose) or dose < 5:
            raise ToolRefused("C63 dose implausible (milligrams)")
        self.doses.append((visit, drug, int(dose)))
        return {"visit": visit, "drug": drug, "dose": int(dose), "status": "handed out"}

    def bill(self, visit: str, lines: str, payer: str = "") -> dict[str, Any]:
        self._known_visit(visit)
        read = [re.fullmatch(r"([A-Z]+)\*([1-9]\d?)", line, re.ASCII) for line in lines.split("+")]
        parts = [(line[1], line[2]) for line in read if line]
        if len(parts) < len(read):
            raise ToolRefused("C71 lines: TARIFF*COUNT, several with +")
        for tariff, _ in parts:
            if tariff not in TARIFFS:
                raise ToolRefused(f"C72 no tariff {tariff}; tariffs: {', '.join(TARIFFS)}")
        if payer not in PAYERS:
            raise ToolRefused(f"C73 payer: one of {', '.join(PAYERS)}")
        if payer not in ("OWN", PATIENTS[self._patient_of(visit)][3]):
            raise ToolRefused(f"C74 the patient is not insured with {payer}")
        self.bills.append((visit, "+".join(sorted(f"{tariff}*{count}" for tariff, count in parts)), payer))
        return {"visit": visit, "bill": f"F{900 + len(self.bills)}"}

    def takings(self, period: str, kind: str, room: str = "") -> dict[str, Any]:
        read = re.fullmatch(r"Q([1-4])/(\d\d)", period, re.ASCII)
        if not read:
            raise ToolRefused("C81 period: quarter and year, Qn/yy")
        if kind not in KINDS:
            raise ToolRefused(f"C82 no kind {kind}; kinds: {', '.join(KINDS)}")
        unknown = room and room not in ROOMS
        return {"period": period, "total": 0 if unknown else takings_of(int(read[1]), int(read[2]), kind, room)}

    def _known_visit(self, visit: str) -> None:
        if visit not in self.visits:
            raise ToolRefused(f"C61 no visit {visit}")

    def _patient_of(self, visit: str) -> str:
        return self.visits[visit][0]


def _known_patient(patient: str) -> None:
    if patient not in PATIENTS:
        raise ToolRefused("C41 patient: number of the file expected")


def _drug(drug: str) -> tuple[str, str]:
    number, _, form = drug.partition(":")
    if number not in DRUGS or form not in tuple(DRUGS[number][2]):
        raise ToolRefused("C31 drug must carry its form, e.g. XX000:T (tablets) or XX000:S (syrup)")
    return number, form


def _day(code: str) -> date:
    if not re.fullmatch(r"\d{5}", code, re.ASCII) or not 1 <= int(code[2:]) <= 365:
        raise ToolRefused("C43 day is not yyddd")
    day = date(2000 + int(code[:2]), 1, 1) + timedelta(int(code[2:]) - 1)
    if day.isoweekday() > 5:
        raise ToolRefused("C44 the clinic is closed that day")
    return day


_TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}


def _misfit(schema: Mapping[str, Any], arguments: Any) -> str:
    """What is wrong with the arguments by the schema; "" where nothing is."""
    if not isinstance(arguments, dict):
        return "arguments: expected a JSON object"
    properties = schema["properties"]
    for name, value in arguments.items():
        if name not in properties:
            return f"unexpected argument {name!r}"
        expected = properties[name]["type"]
        if isinstance(value, bool) or not isinstance(value, _TYPES[expected]) or value in (float("inf"), float("-inf")):
            return f"argument {name!r}: expected {expected}"
        if value != value:  # NaN, which JSON in Python may hold
            return f"argument {name!r}: expected {expected}"
    return next((f"missing argument {name!r}" for name in schema["required"] if name not in arguments), "")


def _tool(name: str, description: str, required: Sequence[str], **types: str) -> dict[str, Any]:
    properties = {each: {"type": kind} for each, kind in types.items()}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "parameters": parameters}


TOOLS: tuple[dict[str, Any], ...] = (
    _tool("find_patient", "Look up patients in the file.", ["query"], query="string"),
    _tool("find_drug", "Look up drugs.", ["term"], term="string", species="string"),
    _tool("drug_stock", "Packs of a drug in a cabinet.", ["drug", "cabinet"], drug="string", cabinet="string"),
    _tool(
        "book_visit",
        "Book a visit.",
        ["patient", "room", "day", "start"],
        patient="string",
        room="string",
        day="string",
        start="string",
        minutes="integer",
    ),
    _tool("record_weight", "Write down a patient's weight.", ["patient", "weight"], patient="string", weight="number"),
    _tool(
        "dispense",
        "Hand out a drug at a visit.",
        ["visit", "drug", "dose"],
        visit="string",
        drug="string",
        dose="number",
    ),
    _tool("bill", "Bill a visit.", ["visit", "lines"], visit="string", lines="string", payer="string"),
    _tool("takings", "What was taken in a period.", ["period", "kind"], period="string", kind="string", room="string"),
)
