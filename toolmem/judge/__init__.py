"""The judges: what says of one tool call whether it failed and what its score is.

    rule_based.py     the offline judge: `RuleBasedCheck`, the recorded flag and the evidence of the output -> verdict
      expectation.py    what kind of output the tool name and the input let one expect
      structured.py     failures told by the structure of an answer: error keys, status fields, exit codes
      bodies.py         the outer object of a structured answer: envelope or record
      messages.py       failures told in a sentence: openings, short complaints, HTTP and HTML answers, empty answers
      wording.py        the words by which answers tell failure, success and emptiness; lists in wording.txt
      programs.py       failures printed by programs and shells: exit codes, tracebacks, builds; lists in programs.txt
      failure_evidence.py  one piece of evidence, and the place in the output that holds it
      literals.py       a reader of JSON and Python literals that also reads the beginning of a cut one
      parameters.py     the input against the tool's JSON schema
    llm_judge.py      the judge that asks a model; its prompts are in prompts.yaml
      verdict_reply.py  what the model replied -> verdict
      loose_json.py     a reader of the almost-JSON that models send

Both judges implement `toolmem.protocols.Judge`; `toolmem.app` chooses one.
"""
