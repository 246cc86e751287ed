"""What agents are asked to do: tasks to learn from, others to be tried on, each with the end that it has to come to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from examples.office.clinic import CABINETS, TODAY, Clinic, stock, takings_of

ROLE = (
    f"You work at the front desk of an animal clinic; today is {TODAY:%A}, {TODAY}. Do what you are asked with the "
    "tools, and book, hand out and bill nothing else. Where a tool refuses a call, find out what it wants and go on. "
    "When all is done, end with one line: `Answer:` and the values that were asked for, in the order of the questions, "
    "numbers as digits without units, separated by semicolons; `Answer: done` where nothing was asked."
)


@dataclass(frozen=True)
class Task:
    """`end`: the state that the clinic has to be in, as `Clinic.state` tells it; `answers`: what the last line says,
    where something was asked.
    """

    name: str
    text: str
    end: tuple[tuple[str, ...], ...] = ()
    answers: tuple[str, ...] = ()

    def solved(self, clinic: Clinic, said: str) -> bool:
        """Whether the clinic stands as asked, nothing else was done to it, and the answers are right."""
        right = not self.answers or answers_in(said) == [_plain(each) for each in self.answers]
        return right and clinic.state() == sorted(self.end)


def answers_in(said: str) -> list[str]:
    """The values of the last line `Answer: ...`; [] where there is none."""
    lines = re.findall(r"^[ \t*_`]*answer[ \t*_`]*:(.*)$", said, re.IGNORECASE | re.MULTILINE)
    return [_plain(each) for each in lines[-1].split(";")] if lines else []


def _plain(value: str) -> str:
    """Without signs around it and between thousands; several names in the order of the alphabet."""
    bare = re.sub(r"(?<=\d),(?=\d{3}\b)", "", value.strip(" \t*_`.").casefold())
    return ",".join(sorted(each.strip() for each in bare.split(",")))


LEARNING: tuple[Task, ...] = (
    Task(
        "vaccination",
        "Book Milo, the Nybergs' cat, into the examination room on 4 December 2026 at 9:20 for 20 minutes, "
        "note that he weighs 4.3 kg, and bill one consultation and one vaccination to his insurer.",
        (
            ("visit", "V204", "EXAM", "2026-12-04", "0920", "20"),
            ("weight", "V204", "4300"),
            ("bill", "V204", "CON*1+VAC*1", "AGR"),
        ),
    ),
    Task(
        "shelves",
        "How many packs of carpofen tablets (for dogs) are in the north cabinet, and how many of amoxidal "
        "syrup for cats in the cold one?",
        answers=(str(stock("DX131", "T", "NORTH")), str(stock("DX118", "S", "COLD"))),
    ),
    Task(
        "books",
        "What was taken with drugs in the third quarter of 2026, and with services in the surgery room in the "
        "first quarter of 2026?",
        answers=(str(takings_of(3, 26, "DRG")), str(takings_of(1, 26, "SVC", "SURG"))),
    ),
    Task(
        "operation",
        "Book Sally Lindqvist, a dog, into surgery on Wednesday, 9 December 2026, or the next day on which "
        "that is possible, at 8:00 for 60 minutes. She weighs 21.5 kg; hand out a quarter of a gram of "
        "carpofen tablets.",
        (
            ("visit", "V225", "SURG", "2026-12-10", "0800", "60"),
            ("weight", "V225", "21500"),
            ("dose", "V225", "DX131:T", "250"),
        ),
    ),
    Task(
        "bird",
        "Book the Tanakas' bird for an X-ray on 7 December 2026 at 14:40 for 40 minutes and bill two X-rays, "
        "which the owner pays.",
        (("visit", "V218", "XRAY", "2026-12-07", "1440", "40"), ("bill", "V218", "XRY*2", "OWN")),
    ),
    Task(
        "lists",
        "What are the file numbers of all birds (separated by commas), and how many packs of praziban tablets "
        "are in the van?",
        answers=("V218,V246", str(stock("DX142", "T", "VAN"))),
    ),
)

TRIAL: tuple[Task, ...] = (
    Task(
        "check-up",
        "Book Luna Rossi, a cat, into the examination room on 11 December 2026 at 16:20 for 40 minutes, note "
        "her weight of 3.85 kg, and bill one consultation and two laboratory tests to her insurer.",
        (
            ("visit", "V260", "EXAM", "2026-12-11", "1620", "40"),
            ("weight", "V260", "3850"),
            ("bill", "V260", "CON*1+LAB*2", "SVE"),
        ),
    ),
    Task(
        "shelves",
        "How many packs of melovet syrup for dogs are in the cold cabinet, and of the bird's amoxidal syrup in"
        " the van?",
        answers=(str(stock("DX137", "S", "COLD")), str(stock("DX124", "S", "VAN"))),
    ),
    Task(
        "books",
        "What was taken with laboratory tests in the second quarter of 2026, and with services in the X-ray "
        "room in the last quarter of 2025?",
        answers=(str(takings_of(2, 26, "LAB")), str(takings_of(4, 25, "SVC", "XRAY"))),
    ),
    Task(
        "operation",
        "Book Rex Heikkila, a dog, into surgery on Saturday, 12 December 2026, or the next day on which that "
        "is possible, at 10:40 for 60 minutes. He weighs 33 kg; hand out 0.1 g of melovet tablets and bill one"
        " surgery to the owner.",
        (
            ("visit", "V253", "SURG", "2026-12-14", "1040", "60"),
            ("weight", "V253", "33000"),
            ("dose", "V253", "DX137:T", "100"),
            ("bill", "V253", "SUR*1", "OWN"),
        ),
    ),
    Task(
        "two pets",
        "Book both of the Okafors' animals into the examination room on 15 December 2026, the dog at 9:00 and "
        "the cat right after him, 20 minutes each, and bill a vaccination each to their insurer.",
        (
            ("visit", "V211", "EXAM", "2026-12-15", "0900", "20"),
            ("visit", "V239", "EXAM", "2026-12-15", "0920", "20"),
            ("bill", "V211", "VAC*1", "FOL"),
            ("bill", "V239", "VAC*1", "FOL"),
        ),
    ),
    Task(
        "long X-ray",
        "Book Gigi Marchetti, a cat, for an X-ray on 16 December 2026 at half past one, or the next start "
        "after that which is offered, for 50 minutes or the next longer time that is offered.",
        (("visit", "V232", "XRAY", "2026-12-16", "1340", "60"),),
    ),
    Task(
        "syrup",
        "Coco, the Dubois family's bird, comes to the examination room on 21 December 2026 at 11:00 for 20 "
        "minutes and weighs 410 g. Hand out 15 mg of doxilin.",
        (
            ("visit", "V246", "EXAM", "2026-12-21", "1100", "20"),
            ("weight", "V246", "410"),
            ("dose", "V246", "DX155:S", "15"),
        ),
    ),
    Task(
        "lists",
        "What are the file numbers of all dogs (separated by commas), and how many packs of amoxidal tablets "
        "for cats are there in all cabinets together?",
        answers=("V211,V225,V253,V267", str(sum(stock("DX118", "T", cabinet) for cabinet in CABINETS))),
    ),
)
