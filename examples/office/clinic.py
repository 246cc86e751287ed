"""The clinic: tools whose conventions stand in no schema, and the state that calls leave behind.

Conventions are met by error messages, and a few by answers of no use: an empty list, a
total of 0. Patients, drugs and figures are made up.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

TODAY = date(2026, 11, 30)
PATIENT = ("owner", "animal", "species", "insurer")
PATIENTS = {
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
DRUGS = {  # number: name, letters of the species it is for, forms it comes in
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


def require(is_fine: object, problem: str) -> None:
    """Raises ToolRefused."""
    if not is_fine:
        raise ToolRefused(problem)


def stock(drug: str, form: str, cabinet: str) -> int:
    """Packs that are there; made up, always alike."""
    return sum(map(ord, drug + form + cabinet)) * 13 % 90


def takings_of(quarter: int, year: int, kind: str, room: str = "") -> int:
    """Crowns that were taken; made up, always alike."""
    names = sum(map(ord, kind)) * 53 + sum(map(ord, room)) * 29
    return (year * 37 + quarter * 411 + names) % 9000 + 700


@dataclass
class Clinic:
    """One clinic, as it stands before a task. Each tool is a method of its own name."""

    visits: dict[str, tuple[str, str, date, str, int]] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    doses: list[tuple[str, str, int]] = field(default_factory=list)
    bills: list[tuple[str, str, str]] = field(default_factory=list)

    def call(self, tool: str, arguments: Any) -> tuple[str, bool]:
        """The output of a call and whether it worked, whatever is sent."""
        schema = next((each["parameters"] for each in TOOLS if each["name"] == tool), None)
        if schema is None:
            return f"no tool {tool!r}", False
        if problem := _misfit(schema, arguments):
            return problem, False
        try:
            return json.dumps(getattr(self, tool)(**arguments)), True
        except ToolRefused as refused:
            return str(refused), False

    def state(self) -> list[tuple[str, ...]]:
        """What calls have left behind, sorted."""
        left: list[tuple[str, ...]] = [
            ("visit", who, room, str(day), at, str(long))
            for who, room, day, at, long in self.visits.values()
        ]
        left += [("weight", patient, str(grams)) for patient, grams in self.weights.items()]
        left += [("dose", self.visits[v][0], drug, str(dose)) for v, drug, dose in self.doses]
        left += [("bill", self.visits[v][0], lines, payer) for v, lines, payer in self.bills]
        return sorted(left)

    def find_patient(self, query: str) -> dict[str, Any]:
        key, sign, value = query.strip().partition("=")
        require(sign, "C11 query: key=value")
        require(key in PATIENT[:3], f"C12 no key {key}; keys: owner, animal, species")
        place = PATIENT.index(key)  # the file is in capitals
        found = [number for number, patient in PATIENTS.items() if patient[place] == value]
        rows = [{"number": n, **dict(zip(PATIENT, PATIENTS[n], strict=True))} for n in found]
        return {"patients": rows}

    def find_drug(self, term: str, species: str = "") -> dict[str, Any]:
        is_letter = species in ("F", "K", "B")
        require(is_letter, "C22 species letter: F, K, B (feline, canine, bird)")
        rows = [
            {"drug": number, "name": name, "forms": list(forms)}
            for number, (name, of, forms) in DRUGS.items()
            if name.startswith(term) and species in of
        ]
        return {"drugs": rows}

    def drug_stock(self, drug: str, cabinet: str) -> dict[str, Any]:
        known = ", ".join(CABINETS)
        require(cabinet in CABINETS, f"C32 no cabinet {cabinet}; cabinets: {known}")
        return {"drug": drug, "cabinet": cabinet, "packs": stock(*_drug(drug), cabinet)}

    def book_visit(
        self, patient: str, room: str, day: str, start: str, minutes: int = 30
    ) -> dict[str, Any]:
        require(patient in PATIENTS, "C41 patient: number of the file expected")
        require(room in ROOMS, f"C42 no room {room}; rooms: {', '.join(ROOMS)}")
        when = _day(day)
        is_cleaned = room == "SURG" and when.isoweekday() == 3
        require(not is_cleaned, "C45 SURG is cleaned on Wednesdays")
        fits = re.fullmatch(r"(0[89]|1[0-7])(00|20|40)", start, re.ASCII)
        require(fits, "C46 start: hhmm, every 20 minutes from 0800 to 1740")
        require(minutes in (20, 40, 60), f"C47 {minutes} minutes are not offered")
        number = f"N{501 + len(self.visits)}"
        self.visits[number] = (patient, room, when, start, minutes)
        return {"visit": number, "room": room, "day": day, "start": start, "minutes": minutes}

    def record_weight(self, patient: str, weight: float) -> dict[str, Any]:
        require(patient in PATIENTS, "C41 patient: number of the file expected")
        is_plausible = weight == int(weight) and 20 <= weight <= 90_000
        require(is_plausible, "C51 weight implausible (grams)")
        self.weights[patient] = int(weight)
        return {"patient": patient, "weight": int(weight)}

    def dispense(self, visit: str, drug: str, dose: float) -> dict[str, Any]:
        require(visit in self.visits, f"C61 no visit {visit}")
        _drug(drug)
        is_weighed = self.visits[visit][0] in self.weights
        require(is_weighed, "C62 no weight of the patient on file today")
        require(dose == int(dose) and dose >= 5, "C63 dose implausible (milligrams)")
        self.doses.append((visit, drug, int(dose)))
        return {"visit": visit, "drug": drug, "dose": int(dose), "status": "handed out"}

    def bill(self, visit: str, lines: str, payer: str = "") -> dict[str, Any]:
        require(visit in self.visits, f"C61 no visit {visit}")
        parts = sorted(lines.split("+"))
        is_read = all(re.fullmatch(r"[A-Z]+\*[1-9]\d?", part, re.ASCII) for part in parts)
        require(is_read, "C71 lines: TARIFF*COUNT, several with +")
        for tariff in (part.partition("*")[0] for part in parts):
            known = ", ".join(TARIFFS)
            require(tariff in TARIFFS, f"C72 no tariff {tariff}; tariffs: {known}")
        require(payer in PAYERS, f"C73 payer: one of {', '.join(PAYERS)}")
        is_insured = payer in ("OWN", PATIENTS[self.visits[visit][0]][3])
        require(is_insured, f"C74 the patient is not insured with {payer}")
        self.bills.append((visit, "+".join(parts), payer))
        return {"visit": visit, "bill": f"F{900 + len(self.bills)}"}

    def takings(self, period: str, kind: str, room: str = "") -> dict[str, Any]:
        read = re.fullmatch(r"Q([1-4])/(\d\d)", period, re.ASCII)
        require(read, "C81 period: quarter and year, Qn/yy")
        require(kind in KINDS, f"C82 no kind {kind}; kinds: {', '.join(KINDS)}")
        assert read is not None
        quarter, year = int(read[1]), int(read[2])
        is_known = not room or room in ROOMS
        total = takings_of(quarter, year, kind, room) if is_known else 0
        return {"period": period, "total": total}


def _drug(drug: str) -> tuple[str, str]:
    number, _, form = drug.partition(":")
    is_known = number in DRUGS and form in tuple(DRUGS[number][2])
    require(is_known, "C31 drug must carry its form, e.g. XX000:T (tablets) or XX000:S (syrup)")
    return number, form


def _day(code: str) -> date:
    """Of two digits of the year and three of the day in it."""
    is_code = re.fullmatch(r"\d{5}", code, re.ASCII) and 1 <= int(code[2:]) <= 365
    require(is_code, "C43 day is not yyddd")
    day = date(2000 + int(code[:2]), 1, 1) + timedelta(int(code[2:]) - 1)
    require(day.isoweekday() <= 5, "C44 the clinic is closed that day")
    return day


TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}


def _misfit(schema: dict[str, Any], arguments: Any) -> str:
    """What is wrong with the arguments by the schema; "" where nothing is."""
    if not isinstance(arguments, dict):
        return "arguments: expected a JSON object"
    for name, value in arguments.items():
        if name not in schema["properties"]:
            return f"unexpected argument {name!r}"
        expected = schema["properties"][name]["type"]
        if isinstance(value, bool) or not isinstance(value, TYPES[expected]):
            return f"argument {name!r}: expected {expected}"
    missing = [name for name in schema["required"] if name not in arguments]
    return f"missing argument {missing[0]!r}" if missing else ""


def _tool(name: str, description: str, required: str, **types: str) -> dict[str, Any]:
    properties = {each: {"type": kind} for each, kind in types.items()}
    parameters = {"type": "object", "properties": properties, "required": required.split()}
    return {"name": name, "description": description, "parameters": parameters}


S, N = "string", "number"
TOOLS = [
    _tool("find_patient", "Look up patients in the file.", "query", query=S),
    _tool("find_drug", "Look up drugs.", "term", term=S, species=S),
    _tool("drug_stock", "Packs of a drug in a cabinet.", "drug cabinet", drug=S, cabinet=S),
    _tool(
        "book_visit",
        "Book a visit.",
        "patient room day start",
        **{"patient": S, "room": S, "day": S, "start": S, "minutes": "integer"},
    ),
    _tool("record_weight", "Write down a patient's weight.", "patient weight", patient=S, weight=N),
    _tool("dispense", "Hand out a drug.", "visit drug dose", visit=S, drug=S, dose=N),
    _tool("bill", "Bill a visit.", "visit lines", visit=S, lines=S, payer=S),
    _tool("takings", "What was taken in a period.", "period kind", period=S, kind=S, room=S),
]
