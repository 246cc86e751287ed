"""What guidance buys: the room where guidance from earlier conversations meets later ones.

In the order in which a recording meets them:

    splitting      earlier and later calls of each tool, no task on both sides
    opportunities  failures that the tool's next calls repaired, and how
    vocabulary     the words by which a text is read, in English and Chinese
    reading        which class of error and which kinds of repair a text names, within a token budget
    baselines      texts to compare with: counting only, counting pairs
    coverage       repair coverage: of the repaired failures, the share whose kind of repair the guidance names
    skill          the claims' forecast of failure against the tool's past failure rate (Brier)
    warned         warnings that later calls prove wrong
    conditions_read  what a warning warns of, as far as a text tells it
    intervals      bootstrap intervals over conversations or tasks
    paired         two guidances on the same failures, call by call: not inferior by a stated margin
    replay         a recording once more under a policy: the real op and store, prompts counted, and what the agent knew
    call_lines     the lines of calls in tokens: what a single pass over them would take
    writing        the data-driven writer's guidance as it stands after calls that were summarized now and then

Results are dataclasses; `Coverage.frame()`, `Warnings.frame()` and `skill.frame_of(forecasts)` are data frames. A text
may come from any author, and every author's text is read by the same rules.
"""
