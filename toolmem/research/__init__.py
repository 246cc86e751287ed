"""Evaluation, comparison of judges, backtest and report. Nothing that an agent's process runs imports this.

recordings      files of recorded calls, as the commands take them
evaluation      the main job: a recording in; judged calls, guidance and a report out
comparison      several judges on the same calls
calibration     a person labels some calls, and the judge's rate is corrected by them
backtest        guidance from earlier calls against later ones
report          the numbers, tables, figures and the page
"""
