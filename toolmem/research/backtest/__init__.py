"""The backtest: guidance is made of earlier conversations and measured on later ones.

splitting      earlier and later calls of each tool, no task on both sides
opportunities  failures that the tool's next calls repaired, and how
naming         which repairs guidance names, by its claims within a token budget
baselines      guidance to compare with: counting only, counting pairs
coverage       repair coverage: of the repaired failures, the share whose kind of repair the guidance names
paired         intervals over conversations or tasks; two guidances on the same failures, call by call
replay         a recording once more under a policy: the real op and store, prompts counted, and what the agent knew
"""
